// Reads requests for responses.
import {
  isEmpty, isGiven, isObject, list, oneOf, required, RequestError, text, unsupported, wrongType
} from './checks.js'
import {
  checkBody, common, effort, flatFormat, IGNORED, maxTokens, read, readFields, SAMPLING, topLogprobs
} from './job.js'
import type { Body, Job, Known, Readers } from './job.js'
import { contentOf, ROLES } from './request.js'
import type { ResponseObject } from './responses-types.js'
import type { Message } from '../types.js'

/** The parameter that asks for reasoning. */
export const EFFORT = 'reasoning.effort'

/** The fields of a response that repeat its request. */
type Repeated = Pick<
  ResponseObject,
  'instructions' | 'max_output_tokens' | 'metadata' | 'reasoning' | 'temperature' | 'text'
  | 'top_logprobs' | 'top_p'
>

/** The work of a request: one generation. */
export interface ResponseJob extends Job {
  repeated: Repeated
}

const OPTIONS: Readers = {
  ...SAMPLING,
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
  ignored: [...IGNORED, 'access_programs', 'image', 'max_tool_calls', 'parallel_tool_calls'],
  unsupported: {
    background: value => value === false,
    context_management: isEmpty,
    conversation: () => false,
    moderation: () => false,
    previous_response_id: () => false,
    prompt: () => false,
    store: value => value === false,
    tool_choice: value => value === 'none' || value === 'auto',
    tools: (value, { tool_choice: choice }) => choice === 'none' || isEmpty(value),
    truncation: value => value === 'disabled'
  },
  why: {
    background: 'a page waits for its answer, and can stop it. Stream it instead.',
    context_management: 'nothing of the input is left out. Send fewer items.',
    conversation: NOT_KEPT,
    previous_response_id: NOT_KEPT,
    prompt: 'there are no stored prompts here. Send \'instructions\' and \'input\'.',
    store: 'responses are not kept here. Leave it out, or send false.',
    tool_choice: 'responses have no tools yet.',
    tools: 'responses have no tools yet.',
    truncation: 'nothing of the input is left out. Send fewer items.'
  }
}

/** Reads the body of a request to `/v1/responses`. */
export function readResponseRequest(body: unknown): ResponseJob {
  const request = checkBody(body)
  const options = read(request, OPTIONS, KNOWN)
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
    reasoning: { effort: given.reasoning?.effort ?? null, summary: null },
    temperature: given.temperature ?? 1,
    text: { format: given.text?.format ?? { type: 'text' } },
    top_logprobs: given.top_logprobs ?? 0,
    top_p: given.top_p ?? 1
  }
}

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
  const found: Message[] = typeof input === 'string'
    ? [{ role: 'user', content: input }]
    : list(input, 'input', 'a string or an array')
      .flatMap((item, at) => itemOf(item, `input[${at}]`))
  if (found.length === 0) {
    throw new RequestError('Invalid \'input\': there is no message in it.', 'empty_array', 'input')
  }
  const { instructions } = request
  if (!isGiven(instructions)) return found
  return [{ role: 'system', content: text(instructions, 'instructions') }, ...found]
}

/** The message of an item. Of reasoning there is none. */
function itemOf(value: unknown, param: string): Message[] {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  const { type = 'message', content } = value
  if (type === 'reasoning') return []
  if (type !== 'message') {
    const why = type === 'item_reference' ? NOT_KEPT : undefined
    throw unsupported(`${param}.type`, text(type, `${param}.type`), why)
  }
  const role = oneOf(required(value, 'role', param), `${param}.role`, Object.keys(ROLES))
  const said = contentOf(content, `${param}.content`, ['input_text', 'output_text'])
  return [{ role: ROLES[role]!, content: said }]
}
