// Reads requests for chat completions and completions.
import {
  boolean, integer, isEmpty, isGiven, isObject, list, oneOf, required, RequestError, text, unsupported,
  wrongType
} from './checks.js'
import {
  checkBody, common, effort, format, IGNORED, maxTokens, read, SAMPLING, topLogprobs
} from './job.js'
import type { Body, Job, Readers } from './job.js'
import { argumentsOf, checkTools, functionOf, toolReaders } from './tools.js'
import type { Input, Message, ToolCall } from '../types.js'

/** The tokens of an answer of `/v1/completions` by default. */
const COMPLETION_TOKENS = 16
const MAX_COMPLETION_LOGPROBS = 5
/** The most choices of a request, for all its prompts together. */
const MAX_CHOICES = 2048

const CHAT: Readers = {
  ...SAMPLING,
  ...toolReaders('function'),
  max_tokens: maxTokens,
  logprobs: (value, param) => boolean(value, param) ? { logprobs: 0 } : {},
  top_logprobs: topLogprobs,
  max_completion_tokens: maxTokens,
  response_format: format,
  reasoning_effort: effort
}

const COMPLETION: Readers = {
  ...SAMPLING,
  max_tokens: maxTokens,
  logprobs: (value, param) => ({ logprobs: integer(value, param, 0, MAX_COMPLETION_LOGPROBS) })
}

/** The parameters that the functions below read themselves. */
const READ = ['model', 'messages', 'prompt', 'n', 'stream', 'stream_options']

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
  // These three are for completions, which have no tools.
  parallel_tool_calls: () => true,
  tool_choice: value => value === 'none' || value === 'auto',
  tools: isEmpty,
  web_search_options: () => false
}

const KNOWN = { own: READ, ignored: IGNORED, unsupported: UNSUPPORTED }

/** Reads the body of a request to `/v1/chat/completions`. */
export function readChatRequest(body: unknown): Job {
  const request = checkBody(body)
  const options = read(request, CHAT, KNOWN)
  if (isGiven(request.max_tokens) && isGiven(request.max_completion_tokens)) {
    const why = 'Only one of \'max_tokens\' and \'max_completion_tokens\' is allowed.'
    throw new RequestError(why, 'invalid_parameter_combination', 'max_tokens')
  }
  if (request.logprobs === true) options.logprobs = Number(request.top_logprobs ?? 0)
  else if (options.logprobs) {
    const why = 'The \'top_logprobs\' parameter is only allowed when \'logprobs\' is enabled.'
    throw new RequestError(why, 'invalid_parameter_combination', 'top_logprobs')
  } else delete options.logprobs
  checkTools(options, 'response_format')
  return { ...common(request), inputs: [messages(required(request, 'messages'))], options }
}

/** Reads the body of a request to `/v1/completions`. */
export function readCompletionRequest(body: unknown): Job {
  const request = checkBody(body)
  const options = { maxTokens: COMPLETION_TOKENS, raw: true, ...read(request, COMPLETION, KNOWN) }
  const inputs = prompts(required(request, 'prompt'))
  const job = { ...common(request), inputs, options }
  if (inputs.length * job.n <= MAX_CHOICES) return job
  const why = `Invalid 'prompt': ${inputs.length} prompts with 'n' of ${job.n} are more than ${MAX_CHOICES} choices.`
  throw new RequestError(why, 'invalid_value', 'prompt')
}

/** The roles of OpenAI's messages, and those that they have here. */
export const ROLES: Record<string, Message['role']> = {
  developer: 'system', system: 'system', user: 'user', assistant: 'assistant'
}
const CHAT_ROLES: typeof ROLES = { ...ROLES, tool: 'tool' }
/** Fields of messages that are not supported. */
const UNSUPPORTED_FIELDS = ['function_call', 'audio']

function messages(value: unknown): Message[] {
  const found = list(value, 'messages').map((item, index) => message(item, `messages[${index}]`))
  if (found.length > 0) return found
  const why = 'Invalid \'messages\': empty array. Expected an array with minimum length 1.'
  throw new RequestError(why, 'empty_array', 'messages')
}

function message(value: unknown, param: string): Message {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  for (const field of UNSUPPORTED_FIELDS) {
    if (isGiven(value[field]) && !isEmpty(value[field])) throw unsupported(`${param}.${field}`)
  }
  const { role, content, tool_calls: calls } = value
  if (role === 'function') throw unsupported(`${param}.role`, role)
  const known = oneOf(required(value, 'role', param), `${param}.role`, Object.keys(CHAT_ROLES))
  const message: Message = { role: CHAT_ROLES[known]!, content: '' }
  if (message.role === 'assistant' && isGiven(calls) && !isEmpty(calls)) {
    const name = `${param}.tool_calls`
    message.toolCalls = list(calls, name).map((one, n) => toolCall(one, `${name}[${n}]`))
  }
  if (message.role === 'tool') {
    message.toolCallId = text(required(value, 'tool_call_id', param), `${param}.tool_call_id`)
  }
  // An assistant that calls tools need not say anything.
  if (isGiven(content) || !message.toolCalls) message.content = contentOf(content, `${param}.content`)
  return message
}

function toolCall(value: unknown, param: string): ToolCall {
  const { name, described, at } = functionOf(value, param, 'function')
  const args = argumentsOf(described, at)
  return { id: text((value as Body).id, `${param}.id`), name, arguments: args }
}

/** The content of a message: a text, or parts of these types, each of which is a line or several. */
export function contentOf(value: unknown, param: string, types: readonly unknown[] = ['text']): string {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw wrongType(param, 'a string or an array of parts', value)
  return value.map((part: unknown, index) => {
    const name = `${param}[${index}]`
    if (!isObject(part)) throw wrongType(name, 'an object', part)
    if (!types.includes(part.type)) throw unsupported(`${name}.type`, text(part.type, `${name}.type`))
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
