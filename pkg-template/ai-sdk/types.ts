// The AI SDK's interface of language models (`LanguageModelV4` of `@ai-sdk/provider`), as far as this
// package reads or writes it. The shapes are written down here, so that the types need no other package.

import type { EmbedOptions, LoadOptions, Message, ModelInfo, GenerateOptions } from '../types.js'
import type { Generation } from '../generation.js'

/**
 * How a model is loaded: the options of `BitNet.load`. A name that is not listed rejects with `bad-option`
 * when the model is loaded.
 */
export type TritloomSettings = LoadOptions

/** A model that is loaded already, such as a `BitNet`. It takes no settings. */
export interface LoadedModel {
  info: Pick<ModelInfo, 'name' | 'thinking'>
  generate(input: readonly Message[], options: GenerateOptions): Generation
  /** For embeddings. */
  embed?(texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]>
  dispose?(): Promise<void>
}

/**
 * `unavailable`: no model can run here, or `cache` is `only` and the model is not stored. `downloadable`:
 * it has to be downloaded. `downloading`: it is being loaded. `available`: nothing is left to download.
 */
export type TritloomAvailability = 'unavailable' | 'downloadable' | 'downloading' | 'available'

/**
 * The options of a call for this provider: `providerOptions: { tritloom: { … } }`. The AI SDK has no name for these
 * options of `generate`. An unknown name is `bad-option`. The SDK passes JSON only, so a `responseFormat` here is
 * `{ type: 'regex', pattern }` or `{ type: 'lark', grammar }`, and no `RegExp`.
 */
export type TritloomProviderOptions = Pick<
  GenerateOptions,
  | 'minP' | 'repeatPenalty' | 'logitBias' | 'thinking' | 'maxThinkingTokens' | 'promptLookup'
  | 'parallelToolCalls' | 'responseFormat'
>

/**
 * The options of a call of an embedding model for this provider: `providerOptions: { tritloom: { … } }`. An unknown
 * name is `bad-option`.
 */
export type TritloomEmbeddingOptions = Pick<EmbedOptions, 'task' | 'instruction' | 'prefix' | 'pooling' | 'truncate'>

/** The options of a call of an embedding model. Those that are not listed, such as `headers`, are ignored. */
export interface EmbedCallOptions {
  values: string[]
  /** Default: all. */
  dimensions?: number
  abortSignal?: AbortSignal
  providerOptions?: { readonly [provider: string]: unknown }
}

/** The vectors of a call, in the order of its values. */
export interface EmbedResult {
  embeddings: number[][]
  usage: { tokens: number }
  /** None. */
  warnings: []
}

/** The data parts of messages in a chat, with the names that the packages of `@browser-ai` have for them. */
export type TritloomDataParts = {
  /** How far the model is loaded. */
  modelDownloadProgress: {
    status: 'downloading' | 'complete' | 'error'
    /** From 0 to 100. */
    progress?: number
    /** For people. */
    message: string
  }
  /** A message for people that is no part of the conversation. */
  notification: { message: string, level: 'info' | 'warning' | 'error' }
}

/** The options of a call. Those that are not listed, such as `headers`, are ignored. */
export interface CallOptions {
  prompt: readonly PromptMessage[]
  /** Default: as many as the context holds. */
  maxOutputTokens?: number | undefined
  /** Default: 1. */
  temperature?: number | undefined
  topP?: number | undefined
  topK?: number | undefined
  presencePenalty?: number | undefined
  frequencyPenalty?: number | undefined
  stopSequences?: readonly string[] | undefined
  /** An integer; only its lowest 32 bits count. */
  seed?: number | undefined
  responseFormat?: { type: 'text' } | { type: 'json', schema?: unknown } | undefined
  tools?: readonly CallTool[] | undefined
  toolChoice?: { type: 'auto' | 'none' | 'required' } | { type: 'tool', toolName: string } | undefined
  /** A model reasons or not: `none` switches it off, and every degree switches it on. */
  reasoning?: 'provider-default' | 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined
  /** Whether a stream has each token too, in parts of the type `raw`. */
  includeRawChunks?: boolean | undefined
  abortSignal?: AbortSignal | undefined
  providerOptions?: { readonly [provider: string]: unknown } | undefined
}

/** A message of a prompt. */
export type PromptMessage =
  | { role: 'system', content: string }
  | { role: 'user' | 'assistant' | 'tool', content: readonly PromptPart[] }

/** A part of a message. A model reads texts, calls and their results. */
export type PromptPart =
  | { type: 'text' | 'reasoning', text: string }
  | { type: 'tool-call', toolCallId: string, toolName: string, input: unknown }
  | { type: 'tool-result', toolCallId: string, toolName: string, output: ToolOutput }
  | { type: 'file' | 'reasoning-file' | 'custom' | 'tool-approval-response' }

/** The result of a call. */
export type ToolOutput =
  | { type: 'text' | 'error-text', value: string }
  | { type: 'json' | 'error-json', value: unknown }
  | { type: 'execution-denied', reason?: string | undefined }
  | { type: 'content', value: readonly ({ type: 'text', text: string } | { type: 'file' | 'custom' })[] }

/** A tool of a call. One of a provider is not supported. */
export type CallTool =
  | {
    type: 'function'
    name: string
    description?: string | undefined
    inputSchema: unknown
    inputExamples?: readonly unknown[] | undefined
  }
  | { type: 'provider', id: string, name: string }

/** Something in a call that was not used, or not as it was asked for. */
export interface CallWarning {
  type: 'unsupported' | 'compatibility'
  feature: string
  details?: string
}

/** The tokens of a call. `cacheRead` are those of the prompt that were not computed again. */
export interface CallUsage {
  inputTokens: {
    total: number | undefined
    noCache: number | undefined
    cacheRead: number | undefined
    cacheWrite: undefined
  }
  outputTokens: { total: number | undefined, text: number | undefined, reasoning: number | undefined }
}

/** Why an answer ended. `raw` is the `finishReason` of the package's own statistics. */
export interface CallFinish {
  unified: 'stop' | 'length' | 'tool-calls' | 'error' | 'other'
  raw: string | undefined
}

/** Statistics of the answer, as `Stats` has them, under the name `tritloom`. */
export type CallMetadata = Record<string, Record<string, string | number | undefined>>

/** A call of a tool. `input` is JSON, and valid by the tool's schema. */
export interface CalledTool {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: string
}

/** A part of a streamed answer. */
export type StreamPart =
  | { type: 'stream-start', warnings: CallWarning[] }
  | { type: 'response-metadata', id: string, timestamp: Date, modelId: string }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end' | 'tool-input-end', id: string }
  | { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta', id: string, delta: string }
  | { type: 'tool-input-start', id: string, toolName: string }
  | CalledTool
  | { type: 'finish', usage: CallUsage, finishReason: CallFinish, providerMetadata?: CallMetadata }
  | { type: 'raw', rawValue: unknown }
  | { type: 'error', error: unknown }

/** The messages and the options with which the model was asked, for logs. */
export interface CallRequest {
  body: unknown
}

/** A whole answer. */
export interface GenerateResult {
  content: ({ type: 'text' | 'reasoning', text: string } | CalledTool)[]
  finishReason: CallFinish
  usage: CallUsage
  providerMetadata?: CallMetadata
  request: CallRequest
  response: { id: string, timestamp: Date, modelId: string }
  warnings: CallWarning[]
}

/** An answer in parts. Cancelling the stream stops the model. */
export interface StreamResult {
  stream: ReadableStream<StreamPart>
  request: CallRequest
}
