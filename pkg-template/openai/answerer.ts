// How a model is asked for the answers of a request.
import { unsupported } from './checks.js'
import type { Job } from './job.js'
import type { Generation } from '../generation.js'
import type { GenerateOptions, Input, ModelInfo } from '../types.js'

/** The part of a model that answers requests. */
export interface Answerer {
  info: Pick<ModelInfo, 'name' | 'thinking'>
  generate(input: Input, options: GenerateOptions): Generation
}

/** One generation of a request. */
interface Single {
  index: number
  input: Input
  options: GenerateOptions
}

/** The name of the model in answers, if the request gives none. */
export const nameOf = (model: Answerer): string => model.info.name || 'tritloom'

/** The generations of a job: for each prompt, all its choices. */
function runs(model: Answerer, { inputs, n, options }: Job, effort: string): Single[] {
  if (options.thinking && !model.info.thinking) {
    throw unsupported(effort, undefined, 'the model cannot be told to reason.')
  }
  const { seed } = options
  return inputs.flatMap((input, first) => Array.from({ length: n }, (_, choice) => ({
    index: first * n + choice,
    input,
    options: seed === undefined ? options : { ...options, seed: (seed + choice) >>> 0 }
  })))
}

/**
 * Starts the generations of a job together, so that they decode as a batch. `leave` stops those
 * that run. It is called if one fails, because the others are of no use then. `effort` is the
 * parameter that asks for reasoning.
 */
export function start(
  model: Answerer, job: Job, signal: AbortSignal | undefined, effort = 'reasoning_effort'
) {
  const left = new AbortController()
  const stop = AbortSignal.any(signal ? [signal, left.signal] : [left.signal])
  const started = runs(model, job, effort).map(({ index, input, options }) =>
    ({ index, generation: model.generate(input, { ...options, signal: stop }) }))
  return { started, leave: () => left.abort() }
}
