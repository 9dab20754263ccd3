// Requests for embeddings, in OpenAI's form.
import { integer, isGiven, oneOf, required, RequestError, text, unknown, wrongType } from './checks.js'
import { checkBody } from './job.js'
import type { EmbedOptions, ModelInfo } from '../types.js'

/** The part of a model that embeds. */
export interface Embedder {
  info: Pick<ModelInfo, 'name'>
  embed(texts: readonly (string | Uint32Array)[], options: EmbedOptions): Promise<Float32Array[]>
}

/** A request that was read. */
export interface EmbeddingJob {
  model: string | undefined
  texts: (string | Uint32Array)[]
  options: EmbedOptions
  isBase64: boolean
}

const MAX_DIMENSIONS = 2 ** 32 - 1

/** OpenAI's limit. Without one, a request of 8 MB may have so many empty texts that the answer does not fit into memory. */
const MAX_INPUTS = 2048

/** Parameters that change no vector. */
const IGNORED = ['model', 'input', 'encoding_format', 'user']

/** The options of `model.embed` that other servers have too, or that OpenAI's interface has no name for. */
const OPTIONS: Record<string, (value: unknown, param: string) => EmbedOptions> = {
  dimensions: (value, param) => ({ dimensions: integer(value, param, 1, MAX_DIMENSIONS) }),
  task: (value, param) => ({ task: oneOf(value, param, ['document', 'query', 'similarity', 'bitext']) as NonNullable<EmbedOptions['task']> }),
  instruction: (value, param) => ({ instruction: text(value, param) }),
  prefix: (value, param) => ({ prefix: text(value, param) }),
  pooling: (value, param) => ({ pooling: oneOf(value, param, ['mean', 'cls', 'last']) as NonNullable<EmbedOptions['pooling']> }),
  truncate: (value, param) => {
    if (typeof value !== 'boolean') throw wrongType(param, 'a boolean', value)
    return { truncate: value }
  }
}

/** Reads the body of a request to `/v1/embeddings`. Throws a `RequestError`. */
export function readEmbeddingRequest(body: unknown): EmbeddingJob {
  const request = checkBody(body)
  const options: EmbedOptions = {}
  for (const [param, value] of Object.entries(request)) {
    if (!isGiven(value) || IGNORED.includes(param)) continue
    if (!Object.hasOwn(OPTIONS, param)) throw unknown(param)
    Object.assign(options, OPTIONS[param]!(value, param))
  }
  const { model, encoding_format: format } = request
  return {
    model: isGiven(model) ? text(model, 'model') : undefined,
    texts: textsOf(required(request, 'input')),
    options,
    isBase64: isGiven(format) && oneOf(format, 'encoding_format', ['float', 'base64']) === 'base64'
  }
}

/** A text, tokens, or several of either. OpenAI's servers refuse what is empty, and these models need not. */
function textsOf(input: unknown): (string | Uint32Array)[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input)) throw wrongType('input', 'a string or an array', input)
  if (input.length === 0) throw new RequestError('Invalid \'input\': the array is empty.', 'invalid_value', 'input')
  if (input.every(id => typeof id === 'number')) return [idsOf(input, 'input')]
  if (input.length > MAX_INPUTS) {
    throw new RequestError(`Invalid 'input': the array has ${input.length} inputs, at most ${MAX_INPUTS} are allowed.`, 'invalid_value', 'input')
  }
  return input.map((one, n) => typeof one === 'string' ? one : idsOf(one, `input[${n}]`))
}

function idsOf(ids: unknown, param: string): Uint32Array {
  if (!Array.isArray(ids)) throw wrongType(param, 'a string or an array of tokens', ids)
  return Uint32Array.from(ids, (id, n) => integer(id, `${param}[${n}]`, 0, 2 ** 32 - 1))
}

/** The answer of `/v1/embeddings`. */
export async function embeddings(
  model: Embedder, { model: name, texts, options, isBase64 }: EmbeddingJob, signal: AbortSignal
) {
  let tokens = 0
  const onProgress: NonNullable<EmbedOptions['onProgress']> = progress => { tokens = progress.tokens }
  const vectors = await model.embed(texts, { ...options, onProgress, signal })
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: isBase64 ? base64(vector) : [...vector] })),
    model: name ?? (model.info.name || 'tritloom'),
    usage: { prompt_tokens: tokens, total_tokens: tokens }
  }
}

/** The values as bytes, the lowest byte of each first, in base64. */
function base64(vector: Float32Array): string {
  const bytes = new DataView(new ArrayBuffer(4 * vector.length))
  vector.forEach((value, n) => bytes.setFloat32(4 * n, value, true))
  let binary = ''
  for (const byte of new Uint8Array(bytes.buffer)) binary += String.fromCharCode(byte)
  return btoa(binary)
}
