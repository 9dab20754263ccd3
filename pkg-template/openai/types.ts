// OpenAI's interface, as far as this package supports it. The shapes and the names of fields are
// those of the npm package `openai`.

import type { JsonSchema } from '../types.js'

/** How much to reason. A model here reasons or not: there are no degrees. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** A message. `developer` is another name for `system`. */
export interface ChatCompletionMessageParam {
  role: 'developer' | 'system' | 'user' | 'assistant' | 'tool'
  /**
   * A text, or several, which are joined by line breaks. An assistant that calls tools needs none.
   */
  content?: string | readonly { type: 'text', text: string }[] | null
  /** Of an assistant: the tools that it has called. */
  tool_calls?: readonly ChatCompletionToolCall[] | null
  /** Of a tool: the call whose result this is. */
  tool_call_id?: string
}

/** A call of a tool. */
export interface ChatCompletionToolCall {
  id: string
  type: 'function'
  /** `arguments` is JSON. */
  function: { name: string, arguments: string }
}

/** A tool that the model may call. Its arguments are valid, whether it is `strict` or not. */
export interface ChatCompletionTool {
  type: 'function'
  function: {
    name: string
    description?: string
    /** The JSON schema of an object. Default: no arguments. */
    parameters?: { readonly [keyword: string]: unknown }
    strict?: boolean | null
  }
}

/**
 * The fields of every request: its model, and how tokens are drawn. `null` is the same as leaving a
 * field out.
 */
export interface DrawingRequest {
  /** Any name: the answer has the same. Default: the loaded model's name. */
  model?: string | null
  /** How freely to draw, from 0 (the likeliest token) to 2. Default: 1. */
  temperature?: number | null
  /** Draw only from the likeliest tokens that together have this share, from 0 to 1. Default: 1. */
  top_p?: number | null
  /** From -2 to 2; default: 0. */
  presence_penalty?: number | null
  /** From -2 to 2; default: 0. */
  frequency_penalty?: number | null
  /** An integer. Only its lowest 32 bits count. Default: another seed for each request. */
  seed?: number | null
  /** Draw only from this many of the likeliest tokens; with 0 and -1, from all. Default: 0. */
  top_k?: number | null
  /**
   * Draw only from tokens with at least this share of the likeliest one's probability. Default: 0.
   */
  min_p?: number | null
  /** Divides the logits of tokens of the prompt and the answer, from 0.001 to 1000. Default: 1. */
  repetition_penalty?: number | null
  /**
   * Values that are added to the logits of tokens, by the tokens' ids; from -100 to 100. Default:
   * none.
   */
  logit_bias?: Record<string, number> | null
  /** A text that ends the answer, or several. */
  stop?: string | readonly string[] | null
}

/** The fields of chat completions and of completions. */
interface CompletionRequestBase extends DrawingRequest {
  /**
   * How many choices to generate, as a batch; from 1 to 128. Choice `i` is drawn with `seed + i`.
   * Default: 1.
   */
  n?: number | null
  /** Whether to get the answer in chunks as it comes. Default: `false`. */
  stream?: boolean | null
  /** Needs `stream: true`. With `include_usage`, one more chunk has the usage and no choices. */
  stream_options?: { include_usage?: boolean } | null
}

/** A request for `model.chat.completions.create`. */
export interface ChatCompletionRequest extends CompletionRequestBase {
  /** The conversation so far. */
  messages: readonly ChatCompletionMessageParam[]
  /** The most tokens of reasoning and answer together. Default: as many as the context holds. */
  max_completion_tokens?: number | null
  /** The older name of `max_completion_tokens`. */
  max_tokens?: number | null
  /** Whether to give the log-probability of each token. Default: `false`. */
  logprobs?: boolean | null
  /** How many of the likeliest tokens to give too, from 0 (default) to 20. Needs `logprobs`. */
  top_logprobs?: number | null
  /**
   * `none`: no reasoning before the answer. Any other value: reasoning. Default: the model's own.
   */
  reasoning_effort?: ReasoningEffort | null
  /**
   * The format of the answer. It keeps to a schema, whether `strict` or not. Without a `schema` it is
   * any JSON. Default: `text`.
   */
  response_format?:
    | { type: 'text' | 'json_object' }
    | {
      type: 'json_schema'
      json_schema: { name: string, description?: string, schema?: JsonSchema, strict?: boolean | null }
    }
    | null
  /** The tools that the model may call. Not together with `response_format`. Default: none. */
  tools?: readonly ChatCompletionTool[] | null
  /** Whether the model calls a tool, and which. Default: `auto`. */
  tool_choice?: 'none' | 'auto' | 'required' | { type: 'function', function: { name: string } } | null
  /** Whether it may call several at once. Default: `true`. */
  parallel_tool_calls?: boolean | null
}

/** The tokens of a request and its answer. */
export interface CompletionUsage {
  /** Tokens of the prompt, or of all prompts together. */
  prompt_tokens: number
  /** Tokens of reasoning and answer, of all choices together. */
  completion_tokens: number
  total_tokens: number
  /** `cached_tokens`: tokens of the prompt that were not computed again. */
  prompt_tokens_details: { cached_tokens: number }
  completion_tokens_details: { reasoning_tokens: number }
}

/**
 * Why a choice ended. `stop`: the model or a `stop` text ended it. `length`: it has the most
 * tokens. `tool_calls`: the model has called tools.
 */
export type FinishReason = 'stop' | 'length' | 'tool_calls'

/** A whole answer of `model.chat.completions.create`. */
export interface ChatCompletion {
  id: string
  object: 'chat.completion'
  /** Seconds since 1970. */
  created: number
  model: string
  choices: ChatCompletionChoice[]
  usage: CompletionUsage
}

/** How likely a token was, by the model alone: see `Token.logprob`. */
export interface TokenLogprob {
  token: string
  /** The token's bytes in UTF-8, if they are known. */
  bytes: number[] | null
  logprob: number
}

/** Log-probabilities of each token of the answer, and of the likeliest tokens at its position. */
export interface ChatLogprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[]
  refusal: null
}

/** Log-probabilities in the form of `/v1/completions`. */
export interface CompletionLogprobs {
  tokens: string[]
  token_logprobs: number[]
  /**
   * For each token, an entry for its text and for the texts of the likeliest tokens at its
   * position.
   */
  top_logprobs: Record<string, number>[]
  /** Where each token begins in the answer, in characters. */
  text_offset: number[]
}

export interface ChatCompletionChoice {
  index: number
  /** `content` is `null` if there are only calls. */
  message: { role: 'assistant', content: string | null, refusal: null, tool_calls?: ChatCompletionToolCall[] }
  logprobs: ChatLogprobs | null
  finish_reason: FinishReason
}

/** A chunk of a streamed answer. */
export interface ChatCompletionChunk {
  id: string
  object: 'chat.completion.chunk'
  /** Seconds since 1970. */
  created: number
  model: string
  choices: ChatCompletionChunkChoice[]
  /** With `include_usage`, the last chunk has the usage, and those before have `null`. */
  usage?: CompletionUsage | null
}

export interface ChatCompletionChunkChoice {
  index: number
  delta: {
    role?: 'assistant'
    content?: string
    refusal?: null
    /** The first part of a call has its `id`, `type` and name. Later ones have more of the arguments. */
    tool_calls?: (Partial<Omit<ChatCompletionToolCall, 'function'>> & {
      index: number
      function: Partial<ChatCompletionToolCall['function']>
    })[]
  }
  logprobs: ChatLogprobs | null
  finish_reason: FinishReason | null
}

/** A choice of `/v1/completions`: a whole one, or a chunk of one. */
export interface CompletionChoice {
  index: number
  text: string
  logprobs: CompletionLogprobs | null
  finish_reason: FinishReason | null
}

/**
 * The chunks of an answer, which can be read once. Leaving the loop stops the model.
 * `controller.abort()` stops it too, and then ends the loop.
 */
export interface ChatCompletionStream extends AsyncIterable<ChatCompletionChunk> {
  controller: AbortController
}

/** The options of `create` that are not part of the request. */
export interface ChatCompletionOptions {
  /**
   * Stops the answer: `create` rejects with the signal's reason. Once there is a first chunk, the
   * loop over the chunks ends instead.
   */
  signal?: AbortSignal
}

/** `model.chat`, with the names of OpenAI's client. */
export interface ChatCompletions {
  completions: {
    /**
     * Answers a request of OpenAI's form: whole, or with `stream: true` in chunks.
     *
     * Rejects with `bad-option` for a parameter that is wrong, unknown or not supported. Its
     * message names the parameter. Other failures reject as those of `generate` do, until the first
     * chunk is there. After that they reject the loop over the chunks.
     */
    create(
      request: ChatCompletionRequest & { stream?: false | null }, options?: ChatCompletionOptions
    ): Promise<ChatCompletion>
    create(
      request: ChatCompletionRequest & { stream: true }, options?: ChatCompletionOptions
    ): Promise<ChatCompletionStream>
    create(
      request: ChatCompletionRequest, options?: ChatCompletionOptions
    ): Promise<ChatCompletion | ChatCompletionStream>
  }
}
