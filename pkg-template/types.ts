// The types of calls and their answers, and the codes of failures. Those of models are beside this.
import type { Alternative } from './inspect-types.js'
import type { AbortOptions, Pooling } from './model-types.js'

export type * from './model-types.js'
export type * from './inspect-types.js'

/**
 * The codes of all failures. `Error::CODES` in the crate has the same list: a test compares them.
 */
export type ErrorCode =
  | 'no-webgpu'
  | 'no-adapter'
  | 'missing-feature'
  | 'device-lost'
  | 'out-of-memory'
  | 'bad-gguf'
  | 'unsupported-model'
  | 'missing-tensor'
  | 'tensor-shape'
  | 'bad-adapter'
  | 'bad-template'
  | 'http'
  | 'network'
  | 'io'
  | 'integrity'
  | 'not-cached'
  | 'storage'
  | 'storage-full'
  | 'embedding-model'
  | 'context-full'
  | 'bad-option'
  | 'incomplete'
  | 'index-damaged'
  | 'index-mismatch'
  | 'disposed'
  | 'internal'

/** A message of a conversation. */
export interface Message {
  /** Its author. A message of a `tool` is the result of a call of the assistant before it. */
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  /** Of an assistant: the tools that it has called, after its text. */
  toolCalls?: readonly ToolCall[]
  /** Of a tool: the `id` of the call. Default: the first call that has no result yet. */
  toolCallId?: string
  /**
   * Only for the last message, of the role `assistant`, which must not be empty: whether the answer
   * begins with it. The model goes on after that text, and the generation is the rest, without it.
   * There is no reasoning then. With a `responseFormat`, the two together keep to it. `bad-option`
   * (`prefix`) if no answer in the format begins so, or if the model's chat template cannot do it.
   * Default `false`.
   */
  prefix?: boolean
}

/** A function that a model may call. */
export interface Tool {
  /** Its name: letters and digits of ASCII, and `_-.:/`, at most 128. */
  name: string
  /** Tells the model what the tool does and when to call it. */
  description?: string
  /**
   * The JSON schema of its arguments, whose `type` is `object`, or a schema object that says it: see
   * `responseFormat`. Default: it takes no arguments.
   */
  parameters?: JsonSchema | SchemaObject
}

/**
 * Whether a model calls a tool: `auto`, as it likes; `none`: it gets to know of no tools; `required`: one
 * at least; an object: the one with that name.
 */
export type ToolChoice = 'auto' | 'none' | 'required' | { name: string }

/** A call that a model has made. */
export interface ToolCall {
  /** The name by which a message of the role `tool` refers to it. */
  id: string
  /** The name of the tool. */
  name: string
  /** The arguments. They are valid by the tool's `parameters`. */
  arguments: Record<string, unknown>
}

/** A tool with the function that `model.runTools` runs. Its name is its key there. */
export interface RunnableTool extends Omit<Tool, 'name'> {
  /**
   * Answers a call. A text is the result as it is, undefined is an empty one, and any other value is
   * written as JSON. If it throws, the model gets the error's message.
   */
  // `any`, because each tool has arguments of its own type, and this type serves all of them.
  execute: (args: any, call: { id: string, signal: AbortSignal }) => unknown
}

/** Options of `model.runTools`. Those of `generate` hold for every answer. */
export interface RunToolsOptions extends Omit<GenerateOptions, 'tools' | 'responseFormat' | 'raw' | 'special'> {
  /** A user's message as text, or a conversation. */
  messages: string | readonly Message[]
  /** The tools by their names. */
  tools: Readonly<Record<string, RunnableTool>>
  /** Holds for the first answer. After it, the model calls tools as it likes. */
  toolChoice?: Exclude<ToolChoice, 'none'>
  /**
   * The most answers, at least 1. In the last one the model knows no tools, so that it is a text.
   * Default: 10.
   */
  maxSteps?: number
  /**
   * Gets each answer when it begins, so that a page can show it as it comes: its text, or with `tokens()`
   * its calls too.
   */
  onAnswer?: (answer: AsyncIterable<string> & { tokens(): AsyncIterable<Token> }) => void
  /**
   * Gets what an `execute` has thrown. If it throws itself, `runTools` rejects with that. Default: only
   * the model gets to know.
   */
  onError?: (error: unknown, call: ToolCall) => void
}

/** The result of `model.runTools`. */
export interface ToolRun {
  /** The text of the last answer. */
  text: string
  /** The conversation with all answers, calls and results. */
  messages: Message[]
  /** The statistics of each answer. */
  stats: Stats[]
}

/**
 * The input that the model continues: a user's message as text, a conversation, or tokens. Texts
 * and conversations get the model's chat template around them. Tokens and `raw` texts do not.
 */
export type Input = string | readonly Message[] | Uint32Array

/**
 * Options of `generate` that a chat keeps for its turns. A `responseFormat` and tools are for one turn: a
 * saved chat could not keep a schema object.
 */
export type ChatDefaults = Omit<
  GenerateOptions, 'signal' | 'raw' | 'special' | 'responseFormat' | 'tools' | 'toolChoice' | 'parallelToolCalls'
>

/**
 * Options of `model.createChat`. Those of `generate` hold for every turn that is not given others. A
 * name that is not listed is `bad-option`.
 */
export interface ChatOptions extends ChatDefaults {
  /** A system message, which comes before all others. Default: none. */
  system?: string
  /**
   * Earlier messages of the conversation. If the last one is an answer, `chat.continue()` goes on with
   * it, with or without `prefix: true`. Default: none.
   */
  messages?: readonly Message[]
  /**
   * How to go on when the conversation gets too long for the context. `error` (default): `send`
   * rejects with `context-full`. `slide`: the model does not see the oldest turns any more, but
   * always the system message. They stay in `chat.messages`, and `droppedMessages` in the
   * statistics counts them. As many turns are left out as the answer needs: it gets at least a
   * quarter of the context, or `maxTokens` if that is less. A message that is too long by itself is
   * `context-full`.
   */
  overflow?: 'error' | 'slide'
}

/** Options of `model.countTokens`. Any other option rejects with `bad-option`. */
export type CountOptions = Pick<GenerateOptions, 'tools' | 'toolChoice' | 'parallelToolCalls'>

/** Options of `model.tokenize`. A name that is not listed is `bad-option`. */
export interface TokenizeOptions extends AbortOptions {
  /**
   * Whether to recognise special tokens, such as `<|eot_id|>` and `<think>`, in the text. Otherwise
   * they are plain text. Default `false`.
   */
  special?: boolean
}

/** Options of `model.generate`, and of the turns of a chat. A name that is not listed is `bad-option`. */
export interface GenerateOptions {
  /**
   * The most tokens of reasoning and answer together. At least 1; default: as many as the context
   * holds.
   */
  maxTokens?: number
  /**
   * Whether the model is to reason before it answers. Default: its template decides. Rejects with
   * `bad-option` if the model has no such switch, see `model.info.thinking`. For models that do not
   * reason, `false` is always allowed.
   */
  thinking?: boolean
  /**
   * The most tokens of reasoning. When they are spent, the reasoning ends and the answer begins. At
   * least 1; default: no limit but `maxTokens`.
   */
  maxThinkingTokens?: number
  /** How freely to draw. 0 (default) always takes the likeliest token. */
  temperature?: number
  /**
   * Draw only from this many of the likeliest tokens. Of equally likely ones, those with the lowest
   * ids count. 0 (default): from all.
   */
  topK?: number
  /** Draw only from the likeliest tokens that together have this share. 1 (default): from all. */
  topP?: number
  /**
   * Draw only from tokens that are at least this likely, as a share of the likeliest one's
   * probability. 0 (default): from all.
   */
  minP?: number
  /**
   * Makes tokens of the prompt and the answer less likely: divides their positive logits, and
   * multiplies the negative ones. A number above 0; 1 (default) changes nothing.
   */
  repeatPenalty?: number
  /**
   * Makes tokens of the answer less likely. It is subtracted from their logits, as in OpenAI's
   * interface. From -2 to 2; default: 0.
   */
  presencePenalty?: number
  /**
   * Makes tokens of the answer less likely. It is subtracted from their logits once for each time
   * that the answer has them. From -2 to 2; default: 0.
   */
  frequencyPenalty?: number
  /**
   * Values that are added to the logits of tokens before penalties and all else, by the tokens'
   * ids. They are from -100, which all but forbids a token, to 100, which all but forces it.
   * Default: none.
   */
  logitBias?: Readonly<Record<number, number>>
  /**
   * Holds the answer to a format. The model chooses only among the tokens that the format allows. If
   * it allows one text only, that is put in without asking the model. Reasoning is free. The first
   * answer with a format fetches the code for it, 0.5 MB compressed. Default: none.
   */
  responseFormat?: ResponseFormat
  /**
   * The tools that the model may call, from 1 to 128. Their names and schemas become part of the prompt.
   * Calls are no text of the answer: `answer.toolCalls()` has them. Their arguments always are valid. Not
   * together with a `prefix`, and with `responseFormat` only if `toolChoice` is `none`. As a format does, they need a module of 0.5 MB.
   * Default: none.
   */
  tools?: readonly Tool[]
  /** Whether the model calls one. Needs `tools`. Default: `auto`. */
  toolChoice?: ToolChoice
  /** Whether it may call several at once. Needs `tools`. Default: `true`. */
  parallelToolCalls?: boolean
  /**
   * Whether `tokens()` gives the log-probability of each token. The number says for how many of the
   * likeliest tokens at its position it gives that too, from 0 (only the token itself) to 20.
   * Default: none are given.
   */
  logprobs?: number
  /**
   * The same seed on the same adapter draws the same text. An integer from 0 to 4294967295.
   * Default: another one each time.
   */
  seed?: number
  /**
   * Texts that end the answer, and do not become part of it. In the reasoning they do not count.
   * Default: none.
   */
  stop?: string[]
  /**
   * Whether to draft the next tokens if the text repeats itself, as summaries and edits do, and to
   * check several in one step. It never changes the text, and applies only to greedy answers.
   * Default: `true` on GPUs; on CPUs it is no faster.
   */
  promptLookup?: boolean
  /**
   * Stops the answer. Its readers reject with the signal's reason; its `stats` resolve, with the
   * reason `abort`.
   */
  signal?: AbortSignal
  /** Whether a text is the prompt itself, and gets no chat template around it. Default `false`. */
  raw?: boolean
  /**
   * Whether to recognise special tokens in a raw text. Otherwise they are plain text. Needs `raw`.
   * Default `false`.
   */
  special?: boolean
}

/**
 * A format of answers:
 * - `json_schema`: JSON, without white space between its parts, that is valid by a JSON schema, or by a
 *   schema object that says its JSON schema. A schema that is not supported or that nothing can meet is
 *   `bad-option` with the JSON pointer of the part at fault.
 * - `json_object`: any JSON object.
 * - `regex`: a text that the regular expression matches as a whole. A `RegExp` means the same. Flags
 *   that change its matches are `bad-option`, and so are lookahead and lookbehind.
 * - `lark`: a text of a grammar in llguidance's variant of Lark.
 * - A schema object by itself means `json_schema`.
 */
export type ResponseFormat =
  | { type: 'json_schema', schema: JsonSchema | SchemaObject }
  | { type: 'json_object' }
  | { type: 'regex', pattern: string | RegExp }
  | { type: 'lark', grammar: string }
  | RegExp
  | SchemaObject

/** A JSON schema. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown }

/**
 * A schema object that says its JSON schema, as that of zod or of another library with the Standard
 * JSON Schema convention. The answer is an input of the schema.
 */
export type SchemaObject =
  | { readonly '~standard': { readonly jsonSchema: { readonly input: (options: { target: 'draft-2020-12' }) => Record<string, unknown> } } }
  | { readonly toJSONSchema: () => unknown }

/**
 * Options of the turns of a chat. Those that are absent or undefined are the chat's own. A name that
 * is not listed is `bad-option`.
 */
export interface TurnOptions extends GenerateOptions {
  /**
   * The text with which the answer begins, not empty. The model goes on after it, without
   * reasoning. The generation is the rest; the answer in the conversation has both, and both together
   * keep to a `responseFormat`. Default: none.
   */
  prefix?: string
}

/**
 * Options of `model.summarize`. The options of `generate` hold for every prompt of a summary,
 * except two, which hold only for the last prompt, which writes the summary. They are `maxTokens`,
 * by default more than `length` asks for, and `thinking`, by default `false` if the model has such
 * a switch.
 */
export interface SummarizeOptions extends Omit<
  GenerateOptions, 'raw' | 'special' | 'responseFormat' | 'tools' | 'toolChoice' | 'parallelToolCalls'
> {
  /**
   * The kind of summary: `tldr` (default), the essence in a few sentences; `key-points`, a list of
   * lines that begin with `- `; `headline`, one line; `teaser`, sentences that make one want to
   * read on.
   */
  type?: 'tldr' | 'key-points' | 'headline' | 'teaser'
  /**
   * The length: `short` (default), `medium` or `long`. This means 1, 3 or 5 sentences of a `tldr`
   * or a `teaser`; 3, 5 or 7 key points; 12, 17 or 22 words of a `headline`. A model that writes
   * more sentences, key points or lines than that is stopped. Words are not counted.
   */
  length?: 'short' | 'medium' | 'long'
  /** Whether the model is asked for Markdown. Default `plain-text`. */
  format?: 'plain-text' | 'markdown'
  /** Further facts for the model, such as who reads the summary. Default: none. */
  context?: string
  /**
   * Gets the progress, before and after each prompt. If it throws, that is reported as an uncaught
   * error and does not stop the summary.
   */
  onProgress?: (progress: SummaryProgress) => void
}

/** A question about a text. */
export interface Question {
  /** The question. */
  question: string
  /**
   * The kind of decision: `boolean`, yes or no; `choice`, one of `options`; `score`, a number.
   * Default: `choice` if there are options, else `boolean`.
   */
  type?: 'boolean' | 'choice' | 'score'
  /**
   * The answers among which the model decides, two or more with different labels. A `boolean` has
   * none: its labels are `yes` and `no`. Labels of a `score` are numbers; by default they are `1`
   * to `5`.
   */
  options?: readonly (string | QuestionOption)[]
}

/** An answer among which a model decides. */
export interface QuestionOption {
  /** The answer itself, whole. */
  label: string
  /** More about it, for the model. */
  description?: string
}

/** Options of `model.decide`: a question, or `questions`. A name that is not listed is `bad-option`. */
export interface DecideOptions extends Partial<Question>, AbortOptions {
  /** Several questions about the same text, which is computed once for all of them. */
  questions?: readonly Question[]
  /** Facts that the model has to know for all questions, put before the text. Default: none. */
  context?: string
  /**
   * The measure by which options are compared: `none` (default), the probability that the model
   * answers with the whole option and then ends; `length`, its geometric mean for each token, so
   * that long options are no worse for that; `prior`, how much more likely the text makes the
   * option. For `prior`, the same questions are asked about the text `N/A` too, once as long as
   * they stay the same.
   */
  normalize?: 'none' | 'length' | 'prior'
  /**
   * Divides what is compared, as log-probabilities, before it becomes `probabilities`. Above 1, the
   * model is taken to be less certain. Choose it so that decisions with known answers are right as
   * often as `confidence` says. A number above 0; default: 1.
   */
  temperature?: number
}

/** The decision of a question. */
export interface Decision {
  /** The label of the most probable option. */
  label: string
  /** Its probability. */
  confidence: number
  /** The probability of each option by its label. Their sum is 1. */
  probabilities: Record<string, number>
  /**
   * For each option by its label: the log-probability, by the model alone, that it answers with the
   * whole option and then ends.
   */
  logprobs: Record<string, number>
  /** Of a `score`: the mean of the labels, weighted by their probabilities. */
  expectedScore?: number
}

/** The decisions about a text. */
export interface Decisions {
  /** One for each question, in order. */
  decisions: Decision[]
  /** The statistics of all of them. */
  stats: DecisionStats
}

/** The statistics of `decide`. */
export interface DecisionStats {
  /** Tokens of the text and of all questions about it. The text counts once. */
  promptTokens: number
  /** How many of them were still in the KV cache. */
  reusedTokens: number
  /** Tokens of the options that were computed. The last of an answer need not be. */
  optionTokens: number
  /** The passes after the text, each of tokens of several questions or options. */
  passes: number
  /** Milliseconds from the call to its end. */
  time: number
}

/** Options of `model.embed`. A name that is not listed is `bad-option`. */
export interface EmbedOptions extends AbortOptions {
  /**
   * The purpose of the vectors. Models were trained with an instruction before each query, and with none before the
   * documents among which it is searched: so give `query` for the first and nothing for the second. `similarity`
   * is for texts that are compared with each other, `bitext` for translations. `document` (default): the text
   * alone. The instructions are those of Qwen's and BitNet's embedding models.
   */
  task?: 'document' | 'query' | 'similarity' | 'bitext'
  /**
   * A sentence that describes another task, as in `Given a question, retrieve the page that answers it`. It is put
   * before each text, in the words that the model was trained with. Not with `task`.
   */
  instruction?: string
  /** A text that is put before each text as it is, such as `query: `. Not with `task` or `instruction`. */
  prefix?: string
  /**
   * How a text's vector is made of the vectors of its tokens: their mean, the first or the last. Default: that of
   * the load or of the model's file, `info.pooling`.
   */
  pooling?: Pooling
  /**
   * How many values of each vector are kept, the first ones; they get the length 1 again. Only models that were
   * trained for it keep their meaning so. Default: all.
   */
  dimensions?: number
  /** Whether to cut a text that does not fit into the context, instead of rejecting. Default `false`. */
  truncate?: boolean
  /**
   * The number of the first text in messages of errors, as in `texts[300]`, for a page that gives its texts in several
   * calls. Default 0.
   */
  first?: number
  /** Gets the progress. If it throws, that is reported as an uncaught error and does not stop the call. */
  onProgress?: (progress: EmbedProgress) => void
}

/** The progress of `model.embed`. */
export interface EmbedProgress {
  /** How many texts have their vectors. */
  done: number
  /** The number of texts. */
  total: number
  /** Tokens of texts so far, counted for some texts at a time; at the end, of all. */
  tokens: number
  /** How many texts were cut; see `truncate`. Counted as `tokens`. */
  cut: number
}

/** The progress of a summary. */
export interface SummaryProgress {
  /** How many of `passages` have their summaries. */
  done: number
  /**
   * The number of passages of the text. If there are several, their summaries are the next text,
   * and `passages` is counted again for it. The final summary is made of one passage.
   */
  passages: number
  /** The share of the whole, from 0 to 1. It never goes back. */
  fraction: number
}

/** A generated token. If a character takes several tokens, its text comes with the last one. */
export interface Token {
  /** The token's id; absent for text that was held back and comes at the end. */
  id?: number
  /** The token's text; may be empty. */
  text: string
  /**
   * The channel of the text: the reasoning before the answer, the answer, or the arguments of a call.
   * The tokens that begin and end the reasoning belong to it, and have no text.
   */
  channel: 'reasoning' | 'answer' | 'call'
  /** In the channel `call`: the call of a tool. The text is some of its arguments, as JSON. */
  call?: CallPart
  /**
   * With the option `logprobs`: the natural logarithm of the token's probability by the model
   * alone, before `logitBias`, penalties, temperature and all else that changes which token is
   * drawn.
   */
  logprob?: number
  /**
   * With `logprobs`: the token's own bytes in UTF-8. They are never held back as `text` is, so they
   * may end in the middle of a character.
   */
  bytes?: number[]
  /** With `logprobs`: the likeliest tokens at its position, the likeliest first. */
  top?: Alternative[]
}

/** A part of a call of a tool. */
export interface CallPart {
  /** Which call it is: 0 for the first one of the answer. */
  index: number
  /** Where the call begins: its id. */
  id?: string
  /** Where the call begins: the name of the tool. */
  name?: string
  /** `true` where the call is whole. */
  ends?: true
}

/** The statistics of a generation. */
export interface Stats {
  /** Tokens of the prompt. */
  promptTokens: number
  /** Tokens of the prompt that were not computed again, because the KV cache still held them. */
  reusedTokens: number
  /** Tokens of the reasoning and of the answer. */
  completionTokens: number
  /** Tokens of the reasoning. `completionTokens` includes them. */
  reasoningTokens: number
  /** Tokens that the answer's format put in without asking the model; see `responseFormat`. */
  forcedTokens: number
  /** Tokens that were drafted; see `promptLookup`. */
  draftedTokens: number
  /** Drafted tokens that the model chose too. */
  acceptedTokens: number
  /** Steps that checked drafted tokens. */
  draftPasses: number
  /** Tokens that were computed ahead and not needed when the answer ended. */
  unusedTokens: number
  /** The most generations that shared a step, including this one; 1 if it ran alone. */
  batch: number
  /** Milliseconds from the start of the generation to its first token. */
  timeToFirstToken: number
  /** Prompt tokens computed in a second. */
  prefillTokensPerSecond: number
  /** Answer tokens generated in a second. */
  decodeTokensPerSecond: number
  /**
   * Messages of the chat that the model did not see, because the conversation is too long. Present
   * only for a chat with `overflow: 'slide'`.
   */
  droppedMessages?: number
  /**
   * Why it ended. `stop`: the model or a `stop` text ended it. `length`: `maxTokens` or a full
   * context. `abort`: it was stopped. `tool-calls`: the model has called tools and waits for their
   * results.
   */
  finishReason: 'stop' | 'length' | 'abort' | 'tool-calls'
}

/** The time of one kernel in a step. */
export interface KernelTime {
  /** The kernel, as `name` or `name/variant`. */
  kernel: string
  /** Its dispatches in the step. */
  calls: number
  /** The time of all these dispatches. */
  microseconds: number
  /** Bytes that they read and write, each counted once. */
  bytes: number
  /** `bytes` by `microseconds`, in GB/s. */
  gigabytesPerSecond: number
  /** `gigabytesPerSecond` as a share of `Profile.bandwidth`. */
  share: number
}

/** Options of `model.profile`: how the step chooses its token. Default: greedily. */
export type ProfileOptions = Pick<
  GenerateOptions,
  | 'temperature'
  | 'topK'
  | 'topP'
  | 'minP'
  | 'repeatPenalty'
  | 'presencePenalty'
  | 'frequencyPenalty'
  | 'logitBias'
  | 'logprobs'
  | 'seed'
>

/** The times of a step's kernels, by the GPU's own clock. On the CPU, the kernels are `layers` and `lm_head`. */
export interface Profile {
  /** The most that the memory can give, in GB/s, which is the rate of a kernel that only reads. */
  bandwidth: number
  /** The kernels, the slowest first. */
  kernels: KernelTime[]
}
