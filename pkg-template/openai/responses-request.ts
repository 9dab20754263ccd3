// Reads requests for responses.
import {
  isEmpty, isGiven, isObject, list, oneOf, required, RequestError, text, unsupported, wrongType
} from './checks.js'
import {
  checkBody, common, effort, flatFormat, IGNORED, maxTokens, read, readFields, SAMPLING, topLogprobs
} from './job.js'
import type { Body, Job, Known, Readers } from './job.js'
import { contentOf, ROLES } from './request.js'
import type { ResponseObject, ResponseTool } from './responses-types.js'
import { argumentsOf, checkTools, functionName, toolReaders } from './tools.js'
import type { Message, ToolCall } from '../types.js'

/** The parameter that asks for reasoning. */
export const EFFORT = 'reasoning.effort'

/** The fields of a response that repeat its request. */
type Repeated = Pick<
  ResponseObject,
  'instructions' | 'max_output_tokens' | 'metadata' | 'parallel_tool_calls' | 'reasoning'
  | 'temperature' | 'text' | 'tool_choice' | 'tools' | 'top_logprobs' | 'top_p'
>

/** The work of a request: one generation. */
export interface ResponseJob extends Job {
  repeated: Repeated
}

const OPTIONS: Readers = {
  ...SAMPLING,
  ...toolReaders(),
  max_output_tokens: maxTokens,
  top_logprobs: topLogprobs,
  text: (value, param) => readFields(value, param, { format: flatFormat }, ['verbosity']),
  reasoning: (value, param) =>
    readFields(value, param, { effort }, ['context', 'generate_summary', 'mode', 'summary'])
}

/** The things that can be added to a response. All but this one belong to tools, images or other servers. */
const LOGPROBS = 'message.output_text.logprobs'
const INCLUDABLE = [
  LOGPROBS, 'code_interpreter_call.outputs', 'computer_call_output.output.image_url',
  'file_search_call.results', 'message.input_image.image_url', 'reasoning.encrypted_content',
  'web_search_call.action.sources', 'web_search_call.results'
]

const NOT_KEPT = 'responses are not kept here. Send the earlier messages and outputs in \'input\'.'

const KNOWN: Known = {
  own: ['include', 'input', 'instructions', 'metadata', 'model', 'stream', 'stream_options'],
  ignored: [...IGNORED, 'access_programs', 'image', 'max_tool_calls'],
  unsupported: {
    background: value => value === false,
    context_management: isEmpty,
    conversation: () => false,
    moderation: () => false,
    previous_response_id: () => false,
    prompt: () => false,
    store: value => value === false,
    truncation: value => value === 'disabled'
  },
  why: {
    background: 'a page waits for its answer, and can stop it. Stream it instead.',
    context_management: 'nothing of the input is left out. Send fewer items.',
    conversation: NOT_KEPT,
    previous_response_id: NOT_KEPT,
    prompt: 'there are no stored prompts here. Send \'instructions\' and \'input\'.',
    store: 'responses are not kept here. Leave it out, or send false.',
    truncation: 'nothing of the input is left out. Send fewer items.'
  }
}

/** Reads the body of a request to `/v1/responses`. */
export function readResponseRequest(body: unknown): ResponseJob {
  const request = checkBody(body)
  const options = read(request, OPTIONS, KNOWN)
  checkTools(options, 'text.format')
  if (includesLogprobs(request.include)) options.logprobs ??= 0
  else if (!options.logprobs) delete options.logprobs
  const inputs = [messagesOf(request)]
  return { ...common(request), inputs, options, repeated: repeated(request) }
}

/** Called with parameters that were read, but for `metadata`. */
function repeated(request: Body): Repeated {
  const given = request as Partial<Omit<Repeated, 'metadata'>>
  return {
    instructions: given.instructions ?? null,
    max_output_tokens: given.max_output_tokens ?? null,
    metadata: metadataOf(request.metadata),
    parallel_tool_calls: given.parallel_tool_calls ?? true,
    reasoning: { effort: given.reasoning?.effort ?? null, summary: null },
    temperature: given.temperature ?? 1,
    text: { format: given.text?.format ?? { type: 'text' } },
    tool_choice: given.tool_choice ?? 'auto',
    tools: (given.tools ?? []).map(repeatedTool),
    top_logprobs: given.top_logprobs ?? 0,
    top_p: given.top_p ?? 1
  }
}

const repeatedTool = ({ name, description, parameters, strict }: ResponseTool): Required<ResponseTool> => ({
  type: 'function', name, description: description ?? null, parameters: parameters ?? null, strict: strict ?? true
})

function metadataOf(value: unknown): Record<string, string> {
  if (!isGiven(value)) return {}
  if (!isObject(value)) throw wrongType('metadata', 'an object', value)
  for (const [key, inside] of Object.entries(value)) text(inside, `metadata.${key}`)
  return value as Record<string, string>
}

function includesLogprobs(value: unknown): boolean {
  if (!isGiven(value)) return false
  const found = list(value, 'include').map((item, at) => oneOf(item, `include[${at}]`, INCLUDABLE))
  return found.includes(LOGPROBS)
}

/** The conversation of a request: its instructions, and the messages of its input. */
function messagesOf(request: Body): Message[] {
  const input = required(request, 'input')
  const found: Message[] = []
  if (typeof input === 'string') found.push({ role: 'user', content: input })
  else list(input, 'input', 'a string or an array').forEach((item, at) => add(found, item, `input[${at}]`))
  if (found.length === 0) {
    throw new RequestError('Invalid \'input\': there is no message in it.', 'empty_array', 'input')
  }
  const { instructions } = request
  if (!isGiven(instructions)) return found
  return [{ role: 'system', content: text(instructions, 'instructions') }, ...found]
}

/** Adds an item to a conversation. Reasoning is no part of it. */
function add(before: Message[], value: unknown, param: string): void {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  const type = text(value.type ?? 'message', `${param}.type`)
  switch (type) {
    case 'reasoning':
      return
    case 'message':
      return addMessage(before, messageOf(value, param))
    case 'function_call':
      return addCall(before, { id: callId(value, param), name: functionName(value, param), arguments: argumentsOf(value, param) })
    case 'function_call_output':
      return void before.push(resultOf(before, value, param))
    default:
      throw unsupported(`${param}.type`, type, type === 'item_reference' ? NOT_KEPT : undefined)
  }
}

function messageOf(value: Body, param: string): Message {
  const role = oneOf(required(value, 'role', param), `${param}.role`, Object.keys(ROLES))
  const content = contentOf(value.content, `${param}.content`, ['input_text', 'output_text'])
  return { role: ROLES[role]!, content }
}

const callId = (value: Body, param: string): string => text(required(value, 'call_id', param), `${param}.call_id`)

/** Adds a message. If calls of the assistant wait for their results, a text of its own belongs to them. */
function addMessage(before: Message[], message: Message): void {
  const last = before.at(-1)
  if (last?.toolCalls && message.role === 'assistant') last.content += message.content
  else before.push(message)
}

/** Adds a call. The message before it and the calls after that are one answer. */
function addCall(before: Message[], call: ToolCall): void {
  const last = before.at(-1)
  if (last?.role === 'assistant') last.toolCalls = [...last.toolCalls ?? [], call]
  else before.push({ role: 'assistant', content: '', toolCalls: [call] })
}

/** The result of one of the calls with which the last answer has ended. */
function resultOf(before: readonly Message[], value: Body, param: string): Message {
  const toolCallId = callId(value, param)
  const at = before.findLastIndex(({ role }) => role !== 'tool')
  const isCalled = before[at]?.toolCalls?.some(({ id }) => id === toolCallId)
  if (!isCalled || before.slice(at).some(message => message.toolCallId === toolCallId)) {
    const why = `Invalid '${param}.call_id': no call before it waits for a result and has this id.`
    throw new RequestError(why, 'invalid_value', `${param}.call_id`)
  }
  return { role: 'tool', content: contentOf(value.output, `${param}.output`, ['input_text']), toolCallId }
}
