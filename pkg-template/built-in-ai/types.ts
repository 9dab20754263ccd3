// The drafts' dictionaries.
import type { CreateMonitorCallback } from './monitor.js'
import type { LanguageModelToolCall, LanguageModelToolError, LanguageModelToolSuccess } from './tool-values.js'

export type LanguageModelMessageRole = 'system' | 'user' | 'assistant'
export type LanguageModelMessageType = 'text' | 'image' | 'audio' | 'tool-call' | 'tool-response'

/** How freely answers are drawn. `most-predictable` always takes the likeliest token. */
export type LanguageModelSamplingMode =
  | 'most-predictable' | 'predictable' | 'slightly-predictable' | 'balanced' | 'slightly-creative' | 'creative' | 'most-creative'

/** A part of a message. Pictures and sounds are a `NotSupportedError`. */
export interface LanguageModelMessageContent {
  type: LanguageModelMessageType
  /** A text is a string. */
  value: unknown
}

/** A part of an answer of a session whose tools the page runs. */
export type LanguageModelAnswerContent =
  | { type: 'text', value: string }
  | { type: 'tool-call', value: LanguageModelToolCall }

/** A message of a conversation. */
export interface LanguageModelMessage {
  role: LanguageModelMessageRole
  /** Texts beside one another are joined without a space. Results of tools come before the texts. */
  content: string | Iterable<LanguageModelMessageContent | { type: 'tool-response', value: LanguageModelToolSuccess | LanguageModelToolError }>
  /** Only of the last message, of the assistant: whether the answer begins with it. Default `false`. */
  prefix?: boolean
}

/** A prompt: a user's message as text, or messages. */
export type LanguageModelPrompt = string | Iterable<LanguageModelMessage>

/** Content that a session is to take or to give. Texts always are. */
export interface LanguageModelExpected {
  type: LanguageModelMessageType
  languages?: Iterable<string>
}

/** A function that the model may call. */
export interface LanguageModelTool {
  name: string
  description: string
  /** The JSON schema of its arguments, of the type `object`. */
  inputSchema: object
  /**
   * Answers a call. The model gets a result that is no text as JSON. If the function throws an error, the model gets the
   * error's message. Without this function, `prompt()` gives the calls to the page, which needs `expectedOutputs` of the
   * type `tool-call`.
   */
  execute?: (args: any) => unknown
}

/** Options of `LanguageModel.availability()`. */
export interface LanguageModelCreateCoreOptions {
  /** Ignored, as browsers do in pages: see `samplingMode`. */
  topK?: number
  /** Ignored, as browsers do in pages: see `samplingMode`. */
  temperature?: number
  /** Default `balanced`. */
  samplingMode?: LanguageModelSamplingMode
  expectedInputs?: Iterable<LanguageModelExpected>
  expectedOutputs?: Iterable<LanguageModelExpected>
  tools?: Iterable<LanguageModelTool>
}

/** Options that all `create()` have. */
export interface CreateOptions {
  /** Aborts the creation, and destroys the session afterwards. */
  signal?: AbortSignal
  /** Gets the target of `downloadprogress` events, once. */
  monitor?: CreateMonitorCallback
}

/** Options of `LanguageModel.create()`. */
export interface LanguageModelCreateOptions extends LanguageModelCreateCoreOptions, CreateOptions {
  /** Messages that begin the conversation. They are never evicted. */
  initialPrompts?: Iterable<LanguageModelMessage>
}

/** Options of `prompt()`, `promptStreaming()` and `measureContextUsage()`. */
export interface LanguageModelPromptOptions {
  /**
   * Holds the answer to a JSON schema, or to a text that a `RegExp` matches as a whole. The session calls no tools
   * then.
   */
  responseConstraint?: object
  /** Whether the model is not told about the constraint. Default `false`: it becomes part of the prompt. */
  omitResponseConstraintInput?: boolean
  signal?: AbortSignal
}

/** Options of calls that take no others. */
export interface SignalOptions {
  signal?: AbortSignal
}
