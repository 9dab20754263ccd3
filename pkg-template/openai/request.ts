// Turns requests of OpenAI's form into generations and their options.
import { BitNetError } from '../error.js'
import type { GenerateOptions, Input, Message } from '../types.js'

/** A request that cannot be answered, with the message that OpenAI's servers would send. */
export class RequestError extends BitNetError {
  /** OpenAI's code for the error. */
  readonly kind: string | null
  /** The wrong parameter. */
  readonly param: string | null
  /** The HTTP status. */
  readonly status: number

  constructor(message: string, kind: string | null, param: string | null = null, status = 400) {
    super('bad-option', message)
    this.kind = kind
    this.param = param
    this.status = status
  }
}

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

type Body = Record<string, unknown>

/** Turns the values of parameters into options. Throws a `RequestError` for a wrong value. */
type Readers = Record<string, (value: unknown, param: string) => GenerateOptions>

/**
 * OpenAI allows a `top_p` of 0, with which only the likeliest token can be drawn. This value has
 * the same effect.
 */
const MIN_TOP_P = 1e-9
/** The tokens of an answer of `/v1/completions` by default. */
const COMPLETION_TOKENS = 16
const MAX_TOP_LOGPROBS = 20
const MAX_COMPLETION_LOGPROBS = 5
const MAX_BIAS = 100
/** The most choices of a request, for all its prompts together. */
const MAX_CHOICES = 2048
/** Other servers take any factor above 0. */
const MIN_REPETITION = 1e-3
const MAX_REPETITION = 1e3

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

const maxTokens: Readers[string] =
  (value, param) => ({ maxTokens: integer(value, param, 1, 2 ** 32 - 1) })

const SAMPLING: Readers = {
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
  stop: (value, param) => ({ stop: stops(value, param) }),
  max_tokens: maxTokens
}

const CHAT: Readers = {
  ...SAMPLING,
  logprobs: (value, param) => boolean(value, param) ? { logprobs: 0 } : {},
  top_logprobs: (value, param) => ({ logprobs: integer(value, param, 0, MAX_TOP_LOGPROBS) }),
  max_completion_tokens: maxTokens,
  response_format: (value, param) => responseFormat(value, param),
  reasoning_effort: (value, param) => ({ thinking: oneOf(value, param, EFFORTS) !== 'none' })
}

const COMPLETION: Readers = {
  ...SAMPLING,
  logprobs: (value, param) => ({ logprobs: integer(value, param, 0, MAX_COMPLETION_LOGPROBS) })
}

/** The parameters that the functions below read themselves. */
const READ = ['model', 'messages', 'prompt', 'n', 'stream', 'stream_options']

/** Parameters that concern OpenAI's servers, and change no text. */
const IGNORED = [
  'metadata', 'parallel_tool_calls', 'prediction', 'prompt_cache_key', 'prompt_cache_options',
  'prompt_cache_retention', 'safety_identifier', 'service_tier', 'user', 'verbosity'
]

/**
 * Known parameters that are not supported. A value that asks for nothing is accepted: each function
 * says whether it does.
 */
const UNSUPPORTED: Record<string, (value: unknown, request: Body) => boolean> = {
  audio: () => false,
  best_of: value => value === 1,
  echo: value => value === false,
  function_call: value => value === 'none',
  functions: isEmpty,
  modalities: value => JSON.stringify(value) === '["text"]',
  moderation: () => false,
  response_format: value => isObject(value) && value.type === 'text',
  store: value => value === false,
  suffix: value => value === '',
  tool_choice: value => value === 'none',
  tools: (value, { tool_choice: choice }) => choice === 'none' || isEmpty(value),
  web_search_options: () => false
}

/** Reads the body of a request to `/v1/chat/completions`. */
export function readChatRequest(body: unknown): Job {
  const request = checkBody(body)
  const options = read(request, CHAT)
  if (isGiven(request.max_tokens) && isGiven(request.max_completion_tokens)) {
    const why = 'Only one of \'max_tokens\' and \'max_completion_tokens\' is allowed.'
    throw new RequestError(why, 'invalid_parameter_combination', 'max_tokens')
  }
  if (request.logprobs === true) options.logprobs = Number(request.top_logprobs ?? 0)
  else if (options.logprobs) {
    const why = 'The \'top_logprobs\' parameter is only allowed when \'logprobs\' is enabled.'
    throw new RequestError(why, 'invalid_parameter_combination', 'top_logprobs')
  } else delete options.logprobs
  return { ...common(request), inputs: [messages(required(request, 'messages'))], options }
}

/** Reads the body of a request to `/v1/completions`. */
export function readCompletionRequest(body: unknown): Job {
  const request = checkBody(body)
  const options = { maxTokens: COMPLETION_TOKENS, raw: true, ...read(request, COMPLETION) }
  const inputs = prompts(required(request, 'prompt'))
  const job = { ...common(request), inputs, options }
  if (inputs.length * job.n <= MAX_CHOICES) return job
  const why = `Invalid 'prompt': ${inputs.length} prompts with 'n' of ${job.n} are more than ${MAX_CHOICES} choices.`
  throw new RequestError(why, 'invalid_value', 'prompt')
}

function checkBody(body: unknown): Body {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', 'invalid_type')
  return body
}

/** The options that the parameters of a request stand for. */
function read(request: Body, parameters: Readers): GenerateOptions {
  // OpenAI's default. A caller who expects drawn answers should not get a greedy one.
  const options: GenerateOptions = { temperature: 1 }
  for (const [param, value] of Object.entries(request)) {
    if (!isGiven(value) || READ.includes(param) || IGNORED.includes(param)) continue
    if (Object.hasOwn(parameters, param)) Object.assign(options, parameters[param]!(value, param))
    else if (!Object.hasOwn(UNSUPPORTED, param)) {
      throw new RequestError(`Unknown parameter: '${param}'.`, 'unknown_parameter', param)
    } else if (!UNSUPPORTED[param]!(value, request)) throw unsupported(param)
  }
  return options
}

function common(request: Body): Pick<Job, 'model' | 'n' | 'stream' | 'usage'> {
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

const ROLES: Record<string, Message['role']> = {
  developer: 'system', system: 'system', user: 'user', assistant: 'assistant'
}
const TOOL_ROLES: unknown[] = ['tool', 'function']
const TOOL_FIELDS = ['tool_calls', 'function_call', 'audio']

function messages(value: unknown): Message[] {
  const found = list(value, 'messages').map((item, index) => message(item, `messages[${index}]`))
  if (found.length > 0) return found
  const why = 'Invalid \'messages\': empty array. Expected an array with minimum length 1.'
  throw new RequestError(why, 'empty_array', 'messages')
}

function message(value: unknown, param: string): Message {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  for (const field of TOOL_FIELDS) {
    if (isGiven(value[field]) && !isEmpty(value[field])) throw unsupported(`${param}.${field}`)
  }
  const { role, content } = value
  if (TOOL_ROLES.includes(role)) throw unsupported(`${param}.role`, role as string)
  const known = oneOf(required(value, 'role', param), `${param}.role`, Object.keys(ROLES))
  return { role: ROLES[known]!, content: contentOf(content, `${param}.content`) }
}

function contentOf(value: unknown, param: string): string {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw wrongType(param, 'a string or an array of parts', value)
  return value.map((part: unknown, index) => {
    const name = `${param}[${index}]`
    if (!isObject(part)) throw wrongType(name, 'an object', part)
    if (part.type !== 'text') throw unsupported(`${name}.type`, String(part.type))
    return text(part.text, `${name}.text`)
  }).join('\n')
}

/** The prompts: a text, tokens, or a list of either. */
function prompts(value: unknown): Input[] {
  if (typeof value === 'string') return [value]
  const found = list(value, 'prompt', 'a string or an array')
  if (typeof found[0] === 'number') return [ids(found, 'prompt')]
  if (found.length > 0) {
    return found.map((item, index) => {
      const name = `prompt[${index}]`
      return Array.isArray(item) ? ids(item, name) : text(item, name)
    })
  }
  const why = 'Invalid \'prompt\': empty array. Expected an array with minimum length 1.'
  throw new RequestError(why, 'empty_array', 'prompt')
}

const ids = (values: unknown[], param: string): Uint32Array =>
  Uint32Array.from(values, (id, index) => integer(id, `${param}[${index}]`, 0, 2 ** 32 - 1))

const stops = (value: unknown, param: string): string[] =>
  (typeof value === 'string' ? [value] : list(value, param, 'a string or an array of strings'))
    .map((stop, index) => {
      const name = typeof value === 'string' ? param : `${param}[${index}]`
      if (text(stop, name)) return stop as string
      const why = `Invalid '${name}': empty string. Expected a string with minimum length 1.`
      throw new RequestError(why, 'empty_string', name)
    })

const FORMATS = ['text', 'json_object', 'json_schema']

/** A schema is kept to in any case, as OpenAI's servers do where `strict` is true. */
function responseFormat(value: unknown, param: string): GenerateOptions {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  const type = oneOf(required(value, 'type', param), `${param}.type`, FORMATS)
  if (type === 'text') return {}
  if (type === 'json_object') return { responseFormat: { type } }
  const name = `${param}.json_schema`
  const described = required(value, 'json_schema', param)
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

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

function required(object: Body, field: string, param?: string): unknown {
  if (isGiven(object[field])) return object[field]
  const name = param ? `${param}.${field}` : field
  const why = `Missing required parameter: '${name}'.`
  throw new RequestError(why, 'missing_required_parameter', name)
}

function number(value: unknown, param: string, min: number, max: number): number {
  if (typeof value !== 'number') throw wrongType(param, 'a number', value)
  if (value >= min && value <= max) return value
  const why = `Invalid '${param}': ${value}. Expected a number from ${min} to ${max}.`
  throw new RequestError(why, 'invalid_value', param)
}

function integer(
  value: unknown, param: string, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER
): number {
  const isFraction = typeof value === 'number' && !Number.isInteger(value)
  if (isFraction) throw wrongType(param, 'an integer', value)
  return number(value, param, min, max)
}

function boolean(value: unknown, param: string): boolean {
  if (typeof value !== 'boolean') throw wrongType(param, 'a boolean', value)
  return value
}

function text(value: unknown, param: string): string {
  if (typeof value !== 'string') throw wrongType(param, 'a string', value)
  return value
}

function list(value: unknown, param: string, expected = 'an array'): unknown[] {
  if (!Array.isArray(value)) throw wrongType(param, expected, value)
  return value
}

function oneOf(value: unknown, param: string, known: string[]): string {
  const found = text(value, param)
  if (known.includes(found)) return found
  const supported = known.map(name => `'${name}'`).join(', ')
  const why = `Invalid value: '${found}'. Supported values of '${param}' are: ${supported}.`
  throw new RequestError(why, 'invalid_value', param)
}

function wrongType(param: string, expected: string, value: unknown): RequestError {
  const got = value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value
  const why = `Invalid type for '${param}': expected ${expected}, but got ${got} instead.`
  return new RequestError(why, 'invalid_type', param)
}

/** The error for a parameter of OpenAI that this package does not support. */
function unsupported(param: string, value?: string): RequestError {
  return value === undefined
    ? new RequestError(`Unsupported parameter: '${param}'.`, 'unsupported_parameter', param)
    : new RequestError(`Unsupported value: '${param}' '${value}'.`, 'unsupported_value', param)
}
