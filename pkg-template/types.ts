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
  | 'bad-template'
  | 'http'
  | 'network'
  | 'io'
  | 'integrity'
  | 'not-cached'
  | 'storage'
  | 'storage-full'
  | 'context-full'
  | 'bad-option'
  | 'incomplete'
  | 'disposed'
  | 'internal'

/**
 * The source of a model: an address, or the bytes of a GGUF file. The bytes decide what it is;
 * names and types do not matter. But an address that ends in `-00001-of-00003.gguf`, or with other
 * numbers, is that of the first of several files, which are loaded together. A relative address is
 * resolved against the page's. In Node, Deno and Bun, a text that is no address is a path, and `file:` addresses work too.
 * A `Request` must be a GET. A `ReadableStream` can be read only once,
 * so a model that was loaded from one cannot be restored when the GPU is lost. Browsers that cannot
 * transfer streams to a worker are an exception, because there its bytes are gathered first.
 */
export type Source =
  string | URL | Request | Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array>

/** Options of `BitNet.load`. A name that is not listed is `bad-option`. */
export interface LoadOptions {
  /** Aborts the load, which then rejects with the signal's reason. Stored bytes are kept. */
  signal?: AbortSignal
  /**
   * Gets the progress, several times a second. If it throws, that is reported as an uncaught error
   * and does not stop the load.
   */
  onProgress?: (progress: Progress) => void
  /**
   * How to use the models that are stored on this device, for http and https addresses.
   *
   * - `use` (default): load the stored model. If it is not there, or not whole, download the
   *   missing bytes and store them.
   * - `revalidate`: ask the server whether it has another version than the stored one. If so,
   *   download that. Otherwise as `use`. If the server cannot be asked, as offline, the stored
   *   model is loaded, with the note `not-revalidated`.
   * - `refresh`: download all of it again and store that.
   * - `off`: download without storing.
   * - `only`: never use the network. Rejects with `not-cached` if the model is not stored whole,
   *   and with `storage-full` if the reason is that it did not fit when it was downloaded. (A
   *   download that does not fit is no failure: the load goes on without storing, and notes
   *   `not-stored`.)
   */
  cache?: 'use' | 'revalidate' | 'refresh' | 'only' | 'off'
  /**
   * The SHA-256 of the whole file, as in subresource integrity: `sha256-` and the hash in base64.
   * The load rejects with `integrity` if the file has another hash. Default: not compared. Not for
   * a model in several files.
   */
  integrity?: string
  /**
   * If no byte arrives for this many milliseconds, the request is sent again. At least 1; default
   * 15 000. If the server supports ranges, only the missing bytes are downloaded again.
   */
  stallTimeout?: number
  /**
   * The most tokens of prompt and answer together. At least 1; default: as many as the model was
   * made for, or fewer if their keys and values would not fit into 1 GiB of GPU memory.
   */
  context?: number
  /**
   * Where the model runs. `true` (default): in a worker of its own, which ends with the model.
   * `false`: in this thread. A `Worker`: in that worker. Its script must be `tritloom/worker` or
   * import it. It holds one model at a time, and `dispose()` leaves it running.
   */
  worker?: boolean | Worker
  /**
   * The machine that computes the model. `auto` (default): the GPU by WebGPU, or else the CPU. That is slower, so
   * the note `cpu` says it, and `info.notes` too. A GPU that is a CPU itself counts as none, because the CPU's own code is
   * faster. With `strict`, `auto` is the GPU. `webgpu`: the GPU; rejects with `no-webgpu` or
   * `no-adapter` if there is none. `cpu`: the CPU; rejects with `missing-feature` if the browser's
   * WebAssembly has no SIMD. Only the WebAssembly of the one in use is downloaded.
   */
  backend?: 'auto' | 'webgpu' | 'cpu'
  /**
   * How the GPU holds keys and values. `f16` (default). `f32`: in twice the memory, without
   * rounding. `int8`: in half the memory, so that a context may be twice as long. Each head of a
   * position then has a scale, and the logits change. Heads must have a multiple of 16 values.
   */
  kv?: 'f16' | 'f32' | 'int8'
  /**
   * How the GPU holds the weights of the LM head. `f16`: as in the file. `int8`: each weight is
   * split into an upper and a lower byte. To choose a greedy token, or one drawn by the temperature
   * alone, the GPU then reads hardly more than the upper bytes. With top-k, top-p or min-p it also
   * reads the lower bytes of tokens that may be kept. Both take the same memory and give the same
   * tokens. `auto` (default): the faster one on this GPU.
   */
  lmHead?: 'auto' | 'f16' | 'int8'
  /**
   * The order of the ternary weights in the file: `x86` (default), or `arm` if an ARM build of
   * bitnet.cpp made it.
   */
  i2sLayout?: 'x86' | 'arm'
  /**
   * The inputs of matrices whose weights have scales of their own, such as Q2_0 and TQ2_0. `auto`
   * (default): rounded to 8 bits, with a scale for every 32 of them. `f32`: not rounded, which is
   * slower. Files of I2_S are always computed with 8 bits, because their models were trained so.
   */
  activations?: 'auto' | 'f32'
  /**
   * How to treat a file whose tokenizer this package does not know. `strict` (default): reject with
   * `unsupported-model`. `closest`: take the closest rules, so that some texts get other tokens
   * than the model was trained with. A note in `info.notes` says so.
   */
  tokenizer?: 'strict' | 'closest'
  /**
   * The chat template: `file` is the file's own, `builtin` the package's for this family, and any
   * other text is a template in Jinja. Default: the file's if it has one that works, else the
   * package's. `model.info.template` says which one is used.
   */
  template?: 'file' | 'builtin' | (string & {})
  /**
   * `true`: nothing of the model is replaced by something else. Instead, the load rejects: with
   * `unsupported-model` if only the closest tokenizer rules are known, even with
   * `tokenizer: 'closest'`; with `bad-option` if the package's template would be used without
   * `template: 'builtin'`; with `out-of-memory` if the model's own context does not fit and no
   * `context` is given; with `no-adapter` if the GPU is a CPU, without
   * `gpu.features.software: true`; with `missing-feature` if the CPU would compute otherwise than was
   * asked for, such as with a slower kernel; with `network` if `cache: 'revalidate'` cannot ask the server.
   * Default `false`.
   */
  strict?: boolean
  /**
   * `true`: a call with the same input, options and seed gives the same logits, to the last bit,
   * and the same text, whatever ran before it or beside it. This holds on one adapter, with one
   * version of the driver, of the browser and of this package, for loads with the same options.
   * Elsewhere logits differ in their last digits, and a text may then go on in another way.
   *
   * Prompts are computed in chunks of at most 128 tokens. Only whole chunks of earlier prompts are
   * used again, and no answers: a turn of a chat computes the answer before it again. Default
   * `false`.
   */
  deterministic?: boolean
  /** The settings for the GPU. */
  gpu?: GpuOptions
}

/** The settings for the GPU. All fields but `powerPreference` are for tests and bug reports. */
export interface GpuOptions {
  /** Which GPU to use if there are two. Default `high-performance`. */
  powerPreference?: 'low-power' | 'high-performance'
  /** Ask the adapter for no more than these many bytes. Default: all that it has. */
  limits?: { maxStorageBufferBindingSize?: number, maxBufferSize?: number }
  /** Which features to use. */
  features?: {
    /** `false`: no subgroup operations, even if the adapter has them. */
    subgroups?: boolean
    /** Whether to multiply int8 values four at a time, or else fewer. Default: the faster. */
    packedDot?: boolean
    /**
     * `false`: no matrix units, even if the browser offers them. Chromium does so behind a flag,
     * and they then multiply the int8 matrices of prompts. Texts are the same.
     */
    matrixUnits?: boolean
    /** Whether to use the kernels tuned for CPUs. Default: if the adapter is a CPU. */
    software?: boolean
  }
}

/** The progress of a load. */
export interface Progress {
  /**
   * The present work: `download` (bytes come from the network), `cache` (from the browser's
   * storage), `upload` (from memory or a local file), `compile` (the GPU's programs), `ready`.
   *
   * After `ready` the model can be used. If it is not all stored yet, `storing` follows, with the
   * stored bytes as `loaded`; then `stored`, or `ready` again with the note `not-stored`.
   */
  phase: 'download' | 'cache' | 'upload' | 'compile' | 'ready' | 'storing' | 'stored'
  /** Bytes of this phase that are done, including those of an earlier download. */
  loaded: number
  /** Bytes of this phase in all; 0 while unknown. */
  total: number
  /** The share of the whole load, over all phases, from 0 to 1. It never goes back. */
  fraction: number
  /** Whether the bytes come from the browser's storage. */
  fromCache: boolean
  /**
   * The rate of the last three seconds, without the bytes of an earlier download. 0 until it was
   * measured for half a second.
   */
  bytesPerSecond: number
  /** Seconds until all bytes are here, at this rate; absent while unknown. */
  secondsLeft?: number
  /** Other events so far, in order. Each new note is reported at once. */
  notes: ProgressNote[]
}

/** An event that a page may want to tell its visitor while a model loads. `why` is for people. */
export type ProgressNote =
  /** So many bytes are left from an earlier download. They are used if the server supports it. */
  | { kind: 'resumed', bytes: number }
  /** The least recently used model was deleted to make room for this one. */
  | { kind: 'evicted', url: string, bytes: number }
  /**
   * The model is not stored, because there is no room or no storage. Next time it is downloaded
   * again.
   */
  | { kind: 'not-stored', why: string }
  /**
   * The stored model is loaded, but the load could not find out whether the server has another
   * version.
   */
  | { kind: 'not-revalidated', why: string }
  /** If this download breaks off, it starts over, because the server cannot send the rest alone. */
  | { kind: 'not-resumable', why: string }
  /**
   * Another tab downloads this model. Its progress is shown, and then its stored copy is loaded.
   */
  | { kind: 'waiting' }
  /** The bytes so far could not be used, and the load has started again. */
  | { kind: 'restarted', why: string }
  /** The CPU computes. That is slower than a GPU. */
  | { kind: 'cpu', why: string }

/** The options of `BitNet.availability`. */
export interface AvailabilityOptions {
  /**
   * Bytes of a model's file. With these, the speed of each back end is estimated, which takes up to a tenth of a
   * second: the CPU multiplies some weights, and the GPU copies some memory.
   */
  bytes?: number
}

/** Whether a model can run here, and with what. */
export interface Availability {
  /** Whether a model can run. */
  available: boolean
  /** The back end that `BitNet.load` takes by itself; absent if no model can run. */
  backend?: 'webgpu' | 'cpu'
  /** The reason why not, for people; absent if a model can run. */
  reason?: string
  /** The GPU by WebGPU, and the CPU. */
  backends: { webgpu: BackendAvailability, cpu: BackendAvailability }
  /** The adapter, as it calls itself; absent if there is none, empty if the browser names none. */
  adapter?: string
  /** The WebGPU features that the adapter has, sorted. */
  features: string[]
  /** The adapter's WebGPU limits by name. */
  limits: Record<string, number>
  /** Whether the adapter is a CPU. The CPU's own code is faster than that. */
  software: boolean
}

/** Whether a back end is there, and how fast it may be. */
export interface BackendAvailability {
  available: boolean
  /** The reason why not, for people; absent if it is there. */
  reason?: string
  /**
   * Tokens of an answer in a second, estimated for the size of a model; absent without a size. On a CPU, of
   * one thread.
   */
  tokensPerSecond?: number
}

/** A model that is stored on this device, whole or in part. */
export interface StoredModel {
  /** The address from which it was loaded. */
  url: string
  /** Bytes that are stored. Of each file of a model in several files, one version counts. */
  bytes: number
  /** Bytes of the whole model; absent if no server has said so yet. */
  total?: number
  /** Whether all of it is stored. */
  complete: boolean
  /** The version of the file, if the server named one. Absent for a model in several files. */
  etag?: string
  /** When its download began, in milliseconds since 1970. */
  added: number
  /** When it was last used, in milliseconds since 1970. */
  used: number
}

/** The result of checking a stored model. */
export interface Verdict {
  /** Whether all of the model is stored and no byte has changed since. */
  whole: boolean
  /** Bytes that have not changed. */
  bytes: number
  /** Bytes that have changed. They are deleted. The next load downloads only these. */
  damagedBytes: number
}

/** Facts about a loaded model, and how it runs. */
export interface ModelInfo {
  /** Its name in the file (`general.name`). */
  name: string
  /** Its architecture in the file (`general.architecture`), such as `bitnet-b1.58`. */
  architecture: string
  /** The machine that computes: the GPU by WebGPU, or the CPU. */
  backend: 'webgpu' | 'cpu'
  /** The most tokens of prompt and answer together. */
  contextLength: number
  /** How the GPU holds keys and values. */
  kv: 'f16' | 'f32' | 'int8'
  /** Tokens in the vocabulary. */
  vocabSize: number
  /** Weights in the model. */
  parameters: number
  /** Bytes of the file. */
  bytes: number
  /** Bytes of GPU memory in buffers; on the CPU, of memory for weights, keys and values. */
  gpuBytes: number
  /** Bytes of KV cache for a generation whose text fills the context. */
  cacheBytes: number
  /**
   * The most generations that run together. If there is no GPU memory for all their texts, fewer
   * run, and the others wait.
   */
  maxBatch: number
  /**
   * The GPU, as it calls itself; empty if the browser does not name it, as in Firefox. Of the CPU, its
   * instruction set and the number of threads.
   */
  adapter: string
  /** The number of dispatches that the GPU runs for one greedy token. */
  dispatchesPerToken: number
  /**
   * Bytes that the GPU moves for one greedy token when the context is empty. They are hardly more
   * than the weights that it reads. If the LM head is split (see `lmHead`), its upper bytes are
   * enough for most rows, and this counts the lower bytes of a single row. If many tokens are
   * almost as likely, the GPU reads the lower bytes of more rows.
   */
  bytesPerToken: number
  /** The kernels in use, as `name` or `name/variant`. */
  kernels: string[]
  /**
   * Sentences for people about choices that may matter to the text: rules that are not quite those
   * of the file, or factors that depend on the context.
   */
  notes: string[]
  /**
   * The chat template in use: `file`, `builtin: ` and its name, or `given`. Absent if there is
   * none. Then the model takes only `raw` prompts and ids.
   */
  template?: string
  /** The texts of the tokens that end an answer. */
  stopTokens: string[]
  /** Whether `thinking` switches the model's reasoning on and off. */
  thinking: boolean
}

/** How the GPU was lost. The fields are those of `GPUDeviceLostInfo`. */
export interface DeviceLoss {
  /** `destroyed` if something in the page called `destroy()` on the device, else `unknown`. */
  reason: 'destroyed' | 'unknown'
  /** The browser's explanation, for people; often empty. */
  message: string
}

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

/** Options of calls that take no others. A name that is not listed is `bad-option`. */
export interface AbortOptions {
  /**
   * Aborts the call, which then rejects with the signal's reason. Work of `logits`, `restoreChat` and
   * `chat.save` that has begun goes on to its end, and later calls wait for it.
   */
  signal?: AbortSignal
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

/** A token that could have been chosen. */
export interface Alternative {
  id: number
  /** The token's own text. If the token has only a part of a character, its text is U+FFFD. */
  text: string
  /** The natural logarithm of its probability, as `Token.logprob`. */
  logprob: number
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

/** Where the time of a step goes, by the GPU's own clock. */
export interface Profile {
  /** The most that the memory can give, in GB/s, which is the rate of a kernel that only reads. */
  bandwidth: number
  /** The kernels, the slowest first. */
  kernels: KernelTime[]
}
