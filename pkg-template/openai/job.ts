// The work that a request asks for, and the parameters that several kinds of requests have.
import {
  boolean, integer, isGiven, isObject, list, number, oneOf, required, RequestError, text, unknown,
  unsupported, wrongType
} from './checks.js'
import type { GenerateOptions, Input } from '../types.js'

/** The work that a request asks for. */
export interface Job {
  /** The model's name in the request. */
  model: string | undefined
  /** Each input gets `n` choices. */
  inputs: Input[]
  n: number
  stream: boolean
  /** Whether a last chunk has the usage. */
  usage: boolean
  options: GenerateOptions
}

export type Body = Record<string, unknown>

/** Turns the value of a parameter into options. Throws a `RequestError` for a wrong value. */
type Reader = (value: unknown, param: string) => GenerateOptions
export type Readers = Record<string, Reader>

/** The parameters of a kind of request that do not become options. */
export interface Known {
  /** Those that other code reads. */
  own: readonly string[]
  /** Those that change no text. */
  ignored: readonly string[]
  /**
   * Known ones that are not supported. A value that asks for nothing is accepted: each function
   * says whether it does.
   */
  unsupported: Record<string, (value: unknown, request: Body) => boolean>
  /** Why some of them are not, and a way to do without. */
  why?: Record<string, string>
}

/**
 * OpenAI allows a `top_p` of 0, with which only the likeliest token can be drawn. This value has
 * the same effect.
 */
const MIN_TOP_P = 1e-9
const MAX_TOP_LOGPROBS = 20
const MAX_BIAS = 100
/** Other servers take any factor above 0. */
const MIN_REPETITION = 1e-3
const MAX_REPETITION = 1e3

/** The values of `reasoning_effort`. All but `none` mean the same here: the model reasons first. */
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

export const maxTokens: Reader =
  (value, param) => ({ maxTokens: integer(value, param, 1, 2 ** 32 - 1) })

export const topLogprobs: Reader =
  (value, param) => ({ logprobs: integer(value, param, 0, MAX_TOP_LOGPROBS) })

export const effort: Reader =
  (value, param) => ({ thinking: oneOf(value, param, EFFORTS) !== 'none' })

/** How tokens are chosen, and where an answer ends. */
export const SAMPLING: Readers = {
  temperature: (value, param) => ({ temperature: number(value, param, 0, 2) }),
  top_p: (value, param) => ({ topP: Math.max(MIN_TOP_P, number(value, param, 0, 1)) }),
  presence_penalty: (value, param) => ({ presencePenalty: number(value, param, -2, 2) }),
  frequency_penalty: (value, param) => ({ frequencyPenalty: number(value, param, -2, 2) }),
  // These three are not OpenAI's. Other servers with its interface have them.
  top_k: (value, param) => ({ topK: Math.max(0, integer(value, param, -1, 2 ** 32 - 1)) }),
  min_p: (value, param) => ({ minP: number(value, param, 0, 1) }),
  repetition_penalty: (value, param) =>
    ({ repeatPenalty: number(value, param, MIN_REPETITION, MAX_REPETITION) }),
  logit_bias: (value, param) => ({ logitBias: biases(value, param) }),
  seed: (value, param) => ({ seed: integer(value, param) >>> 0 }),
  stop: (value, param) => ({ stop: stops(value, param) })
}

/** Parameters that concern OpenAI's servers, and change no text. */
export const IGNORED = [
  'metadata', 'prediction', 'prompt_cache_key', 'prompt_cache_options',
  'prompt_cache_retention', 'safety_identifier', 'service_tier', 'user', 'verbosity'
]

/** A body that is an object. */
export function checkBody(body: unknown): Body {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', 'invalid_type')
  return body
}

/** The options that the parameters of a request stand for. */
export function read(request: Body, readers: Readers, known: Known): GenerateOptions {
  const { own, ignored, unsupported: refused, why } = known
  // OpenAI's default. A caller who expects drawn answers should not get a greedy one.
  const options: GenerateOptions = { temperature: 1 }
  for (const [param, value] of Object.entries(request)) {
    if (!isGiven(value) || own.includes(param) || ignored.includes(param)) continue
    if (Object.hasOwn(readers, param)) Object.assign(options, readers[param]!(value, param))
    else if (!Object.hasOwn(refused, param)) throw unknown(param)
    else if (!refused[param]!(value, request)) throw unsupported(param, undefined, why?.[param])
  }
  return options
}

/** The options that the fields of a parameter stand for, which is an object. */
export function readFields(
  value: unknown, param: string, readers: Readers, ignored: readonly string[]
): GenerateOptions {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  const options: GenerateOptions = {}
  for (const [field, inside] of Object.entries(value)) {
    const name = `${param}.${field}`
    if (!isGiven(inside) || ignored.includes(field)) continue
    if (!Object.hasOwn(readers, field)) throw unknown(name)
    Object.assign(options, readers[field]!(inside, name))
  }
  return options
}

/** The fields that all kinds of requests have. */
export function common(request: Body): Pick<Job, 'model' | 'n' | 'stream' | 'usage'> {
  const { model, n, stream, stream_options: streamOptions } = request
  const streams = isGiven(stream) && boolean(stream, 'stream')
  if (isGiven(streamOptions) && !streams) {
    const why = 'The \'stream_options\' parameter is only allowed when \'stream\' is enabled.'
    throw new RequestError(why, 'invalid_parameter_combination', 'stream_options')
  }
  return {
    model: isGiven(model) ? text(model, 'model') : undefined,
    n: isGiven(n) ? integer(n, 'n', 1, 128) : 1,
    stream: streams,
    usage: isGiven(streamOptions) && includesUsage(streamOptions)
  }
}

function includesUsage(streamOptions: unknown): boolean {
  if (!isObject(streamOptions)) throw wrongType('stream_options', 'an object', streamOptions)
  const { include_usage: usage } = streamOptions
  return isGiven(usage) && boolean(usage, 'stream_options.include_usage')
}

const stops = (value: unknown, param: string): string[] =>
  (typeof value === 'string' ? [value] : list(value, param, 'a string or an array of strings'))
    .map((stop, index) => {
      const name = typeof value === 'string' ? param : `${param}[${index}]`
      if (text(stop, name)) return stop as string
      const why = `Invalid '${name}': empty string. Expected a string with minimum length 1.`
      throw new RequestError(why, 'empty_string', name)
    })

const FORMATS = ['text', 'json_object', 'json_schema']

/** A format whose schema is described in a field of its own. */
export const format: Reader = (value, param) => formatOf(value, param, 'json_schema')

/** A format that has the fields of its schema itself. */
export const flatFormat: Reader = (value, param) => formatOf(value, param)

/** A schema is kept to in any case, as OpenAI's servers do where `strict` is true. */
function formatOf(value: unknown, param: string, field?: string): GenerateOptions {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  const type = oneOf(required(value, 'type', param), `${param}.type`, FORMATS)
  if (type === 'text') return {}
  if (type === 'json_object') return { responseFormat: { type } }
  const name = field ? `${param}.${field}` : param
  const described = field ? required(value, field, param) : value
  if (!isObject(described)) throw wrongType(name, 'an object', described)
  text(required(described, 'name', name), `${name}.name`)
  // Without a schema it is any JSON.
  const { schema = true } = described
  if (typeof schema !== 'boolean' && !isObject(schema)) throw wrongType(`${name}.schema`, 'an object', schema)
  return { responseFormat: { type: 'json_schema', schema } }
}

/** The biases of tokens, by ids. */
function biases(value: unknown, param: string): Record<number, number> {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  const entries = Object.entries(value).map(([id, bias]) => {
    if (!/^\d+$/.test(id)) {
      const why = `Invalid key in '${param}': ${id}. Expected the id of a token.`
      throw new RequestError(why, 'invalid_value', param)
    }
    return [id, number(bias, `${param}.${id}`, -MAX_BIAS, MAX_BIAS)]
  })
  return Object.fromEntries(entries)
}
