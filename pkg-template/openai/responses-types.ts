// OpenAI's interface for responses, as far as this package supports it. The shapes and the names of
// fields are those of the npm package `openai`.
import type { ChatCompletionOptions, DrawingRequest, ReasoningEffort, TokenLogprob } from './types.js'
import type { JsonSchema } from '../types.js'

/** A message of the input. `developer` is another name for `system`. */
export interface ResponseInputMessage {
  type?: 'message'
  role: 'developer' | 'system' | 'user' | 'assistant'
  /** A text, or several, which are joined by line breaks. */
  content: string | readonly { type: 'input_text' | 'output_text', text: string }[]
}

/**
 * An item of the input: a message, the result of a call, or an item of an earlier output. Earlier
 * reasoning is left out, as the chat templates of models leave it out.
 */
export type ResponseInputItem =
  | ResponseInputMessage | ResponseInputCall | ResponseFunctionCallOutput | ResponseOutputItem

/** An earlier call of a tool. Those after a message of the assistant are one answer with it. */
export type ResponseInputCall =
  Omit<ResponseFunctionCall, 'id' | 'status'> & Partial<Pick<ResponseFunctionCall, 'id' | 'status'>>

/** The result of a call. */
export interface ResponseFunctionCallOutput {
  type: 'function_call_output'
  /** The `call_id` of a call before it. */
  call_id: string
  /** A text, or several, which are joined by line breaks. */
  output: string | readonly { type: 'input_text', text: string }[]
}

/** A tool that the model may call. Its arguments are valid, whether it is `strict` or not. */
export interface ResponseTool {
  type: 'function'
  name: string
  description?: string | null
  /** The JSON schema of an object. Default: no arguments. */
  parameters?: { [keyword: string]: unknown } | null
  strict?: boolean | null
}

/** Whether the model calls a tool, and which. */
export type ResponseToolChoice = 'none' | 'auto' | 'required' | { type: 'function', name: string }

/** The format of an answer. */
export type ResponseTextFormat =
  | { type: 'text' | 'json_object' }
  | {
    type: 'json_schema'
    name: string
    description?: string
    schema: Exclude<JsonSchema, boolean>
    /** The answer keeps to the schema, whether `strict` or not. */
    strict?: boolean | null
  }

/**
 * A request for `model.responses.create`. OpenAI's own has no penalties, `seed`, `top_k`, `min_p`,
 * `logit_bias` or `stop`.
 */
export interface ResponseRequest extends DrawingRequest {
  /** The conversation so far, or the user's message. */
  input: string | readonly ResponseInputItem[]
  /** A system message before the input. */
  instructions?: string | null
  /** The most tokens of reasoning and answer together. Default: as many as the context holds. */
  max_output_tokens?: number | null
  /** The format of the answer. Default: `text`. */
  text?: { format?: ResponseTextFormat | null, verbosity?: 'low' | 'medium' | 'high' | null } | null
  /**
   * With the effort `none`: no reasoning before the answer. Any other effort: reasoning. Default:
   * the model's own. `summary` changes nothing: the output has the reasoning itself.
   */
  reasoning?: {
    effort?: ReasoningEffort | null
    summary?: 'auto' | 'concise' | 'detailed' | null
  } | null
  /** `message.output_text.logprobs` gives the log-probability of each token. */
  include?: readonly string[] | null
  /**
   * How many of the likeliest tokens to give too, from 0 (default) to 20. Above 0, `include` is not
   * needed.
   */
  top_logprobs?: number | null
  /** The tools that the model may call. Not together with a `text.format`. Default: none. */
  tools?: readonly ResponseTool[] | null
  /** Says whether the model has to call a tool: none, any, or this one. By default (`auto`) it decides itself. */
  tool_choice?: ResponseToolChoice | null
  /** Whether it may call several at once. Default: `true`. */
  parallel_tool_calls?: boolean | null
  /** Texts that are given back with the answer. */
  metadata?: Record<string, string> | null
  /** Whether to get the answer in events as it comes. Default: `false`. */
  stream?: boolean | null
  /** No response is kept here. */
  store?: false | null
}

/** How likely a token was, by the model alone, and the likeliest tokens at its position. */
export interface ResponseLogprob extends ResponseTokenLogprob {
  top_logprobs: ResponseTokenLogprob[]
}

/** As `TokenLogprob`. Bytes that are not known are an empty array. */
export interface ResponseTokenLogprob extends TokenLogprob {
  bytes: number[]
}

/** The text of an answer. */
export interface ResponseOutputText {
  type: 'output_text'
  text: string
  annotations: never[]
  /** Of each token, if they were asked for. */
  logprobs: ResponseLogprob[]
}

/** The text of a reasoning. */
export interface ResponseReasoningText {
  type: 'reasoning_text'
  text: string
}

/** Whether an item is whole. `incomplete`: it has the most tokens, or a `stop` text has cut off a call. */
export type ResponseItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** The answer. */
export interface ResponseOutputMessage {
  id: string
  type: 'message'
  role: 'assistant'
  status: ResponseItemStatus
  content: ResponseOutputText[]
}

/** The reasoning before an answer. */
export interface ResponseReasoningItem {
  id: string
  type: 'reasoning'
  status: ResponseItemStatus
  summary: never[]
  content: ResponseReasoningText[]
}

/** A call of a tool. */
export interface ResponseFunctionCall {
  id: string
  type: 'function_call'
  /** If it is `incomplete`, `arguments` is only the beginning. */
  status: ResponseItemStatus
  /** The id by which its result names it. */
  call_id: string
  name: string
  /** JSON. */
  arguments: string
}

export type ResponseOutputItem = ResponseOutputMessage | ResponseReasoningItem | ResponseFunctionCall

/** The tokens of a response. */
export interface ResponseUsage {
  input_tokens: number
  /** `cached_tokens`: tokens of the input that were not computed again. */
  input_tokens_details: { cached_tokens: number, cache_write_tokens: number }
  /** Tokens of reasoning and answer. */
  output_tokens: number
  output_tokens_details: { reasoning_tokens: number }
  total_tokens: number
}

/** A response: whole, or as far as it has come. */
export interface ResponseObject {
  id: string
  object: 'response'
  /** Seconds since 1970. */
  created_at: number
  model: string
  /** `incomplete`: it has the most tokens, or a `stop` text has cut off a call. */
  status: 'in_progress' | 'completed' | 'incomplete'
  incomplete_details: { reason: 'max_output_tokens' } | null
  /** The reasoning, if there is any, the answer, and calls of tools. */
  output: ResponseOutputItem[]
  /** The text of the answer. */
  output_text: string
  /** Once the response has ended. */
  usage?: ResponseUsage
  instructions: string | null
  max_output_tokens: number | null
  metadata: Record<string, string>
  reasoning: { effort: ReasoningEffort | null, summary: null }
  temperature: number
  text: { format: ResponseTextFormat }
  top_logprobs: number
  top_p: number
  access_programs: null
  background: false
  error: null
  parallel_tool_calls: boolean
  previous_response_id: null
  store: false
  tool_choice: ResponseToolChoice
  tools: Required<ResponseTool>[]
  truncation: 'disabled'
}

/** Where the text of an event belongs. */
export interface ResponsePlace {
  item_id: string
  output_index: number
  content_index: number
}

/** An event of a streamed response. `sequence_number` counts from 0. */
export type ResponseEvent = { sequence_number: number } & (
  | {
    type: 'response.created' | 'response.in_progress' | 'response.completed' | 'response.incomplete'
    response: ResponseObject
  }
  | {
    type: 'response.output_item.added' | 'response.output_item.done'
    output_index: number
    item: ResponseOutputItem
  }
  | ResponsePlace & {
    type: 'response.content_part.added' | 'response.content_part.done'
    part: ResponseOutputText | ResponseReasoningText
  }
  | ResponsePlace & { type: 'response.output_text.delta', delta: string, logprobs: ResponseLogprob[] }
  | ResponsePlace & { type: 'response.output_text.done', text: string, logprobs: ResponseLogprob[] }
  | ResponsePlace & { type: 'response.reasoning_text.delta', delta: string }
  | ResponsePlace & { type: 'response.reasoning_text.done', text: string }
  | Pick<ResponsePlace, 'item_id' | 'output_index'> & (
    | { type: 'response.function_call_arguments.delta', delta: string }
    | { type: 'response.function_call_arguments.done', arguments: string }
  )
)

/**
 * The events of a response, which can be read once. Leaving the loop stops the model.
 * `controller.abort()` stops it too, and then ends the loop.
 */
export interface ResponseEvents extends AsyncIterable<ResponseEvent> {
  controller: AbortController
}

/** `model.responses`, with the names of OpenAI's client. */
export interface Responses {
  /**
   * Answers a request of OpenAI's form: whole, or with `stream: true` in events. Nothing is kept:
   * send the earlier messages and outputs in `input`.
   *
   * Rejects with `bad-option` for a parameter that is wrong, unknown or not supported. Its message
   * names the parameter. Other failures reject as those of `generate` do, until the first event is
   * there. After that they reject the loop over the events.
   */
  create(
    request: ResponseRequest & { stream?: false | null }, options?: ChatCompletionOptions
  ): Promise<ResponseObject>
  create(
    request: ResponseRequest & { stream: true }, options?: ChatCompletionOptions
  ): Promise<ResponseEvents>
  create(
    request: ResponseRequest, options?: ChatCompletionOptions
  ): Promise<ResponseObject | ResponseEvents>
}
