// The types of models: where they come from, how they are loaded and stored, and what is known of them.

/** Options of calls that take no others. A name that is not listed is `bad-option`. */
export interface AbortOptions {
  /**
   * Aborts the call, which then rejects with the signal's reason. Work of `logits`, `restoreChat` and
   * `chat.save` that has begun goes on to its end, and later calls wait for it.
   */
  signal?: AbortSignal
}

/**
 * The source of a model: an address, or the bytes of a GGUF file. The bytes decide what it is;
 * names and types do not matter. But an address that ends in `-00001-of-00003.gguf`, or with other
 * numbers, is that of the first of several files, which are loaded together. A relative address is
 * resolved against the page's. In Node, Deno and Bun, a text that is no address is a path, and
 * `file:` addresses work too. A `Request` must be a GET. A `ReadableStream` can be read only once, so
 * a model that was loaded from one cannot be restored when the GPU is lost. Browsers that cannot
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
   * - `only`: never use the network, but `crossOriginStorage`. Rejects with `not-cached` if the model is not stored whole,
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
   * Whether to share the model's file with other sites by Cross-Origin Storage, where the browser has it
   * (`navigator.crossOriginStorage`, a proposal). Only with `integrity`, because files are found there by their
   * hashes, and for http and https addresses.
   *
   * - `read` (default): if the model is not stored whole for this site, look there before the network is
   *   asked. The file is hashed before it is used, and not stored a second time. If it is not there, has
   *   another hash, or if nothing answers within five seconds, it is downloaded. With `revalidate` and
   *   `refresh`, which want the server's file, it is not looked for.
   * - `offer`: also put a downloaded file there once it is stored, so not with `cache: 'off'`. Any site may
   *   find it then: this is for models that anyone may have. The load does not wait for it.
   * - `off`: do neither.
   *
   * The notes `shared`, `offered` and `not-shared` say how it went. No failure of it is an error, with
   * `strict` neither.
   */
  crossOriginStorage?: 'read' | 'offer' | 'off'
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
   * The most threads of the CPU that compute, from 1 to 1024. In a browser, more than one needs a page that is
   * isolated from other origins (`crossOriginIsolated`), and that `worker` is not `false`; Deno and Bun have one. Where they are missing there
   * are fewer, and `info.notes` says so; with `strict`, the load rejects with `missing-feature`. So it is with more than
   * two for each processor that the browser tells of. Texts do not depend on the number. Default: in such a page as many as the device has processors, up to 8; elsewhere, and in Node, one. A
   * GPU needs none.
   */
  threads?: number
  /**
   * How the GPU holds keys and values. `f16` (default). `f32`: in twice the memory, without
   * rounding. `int8`: in half the memory, so that a context may be twice as long. Each head of a
   * position then has a scale, and the logits change. Heads must have a multiple of 16 values.
   */
  kv?: 'f16' | 'f32' | 'int8'
  /**
   * How the weights of the LM head are held. `f16`: as in the file. `int8`: each weight is
   * split into an upper and a lower byte. To choose a greedy token, or one drawn by the temperature
   * alone, the GPU then reads hardly more than the upper bytes. With top-k, top-p or min-p it also
   * reads the lower bytes of tokens that may be kept. The CPU does so for greedy tokens without biases, penalties,
   * formats and `logprobs`. Both take the same memory and give the same tokens. `auto` (default): on
   * a GPU the faster one, on the CPU `int8` for large heads.
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
   * How `model.embed` makes a text's vector of those of its tokens, instead of as the file says. Files and the cards
   * of their models may disagree: measure which one finds better. `info.pooling` says which one is used.
   */
  pooling?: Pooling
  /**
   * Adapters (LoRA, in GGUF) that are loaded after the model and applied, as `model.loadAdapter` and
   * `model.setAdapters` do. If one fails, the load rejects.
   */
  adapters?: readonly LoadedAdapter[]
  /**
   * `true`: nothing of the model is replaced by something else. Instead, the load rejects: with
   * `unsupported-model` if only the closest tokenizer rules are known, even with
   * `tokenizer: 'closest'`; with `bad-option` if the package's template would be used without
   * `template: 'builtin'`; with `out-of-memory` if the model's own context does not fit and no
   * `context` is given; with `no-adapter` if the GPU is a CPU, without
   * `gpu.features.software: true`; with `missing-feature` if the CPU would compute otherwise than was
   * asked for, such as with a slower kernel, or if the GPU computes wrong numbers in its best way; with `network` if `cache: 'revalidate'` cannot ask the server.
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

/** An adapter of a load. */
export interface LoadedAdapter {
  /** Its file. It is not stored on the device. */
  source: Source
  /** The number by which it is multiplied. Default 1. */
  scale?: number
}

/** Facts about an adapter. */
export interface AdapterInfo {
  /** Its name in the file (`general.name`); empty if it has none. */
  name: string
  /** Bytes of its file. */
  bytes: number
  /** The smallest and the largest rank of its pairs. */
  ranks: [smallest: number, largest: number]
  /** Its scale is multiplied by this and divided by the rank; absent if the file has none: the scale stays as it is. */
  alpha?: number
  /** The matrices that it changes, as GGUF names them, without their blocks: `attn_q`. */
  targets: string[]
}

/** An adapter that was loaded for a model. */
export interface Adapter extends AdapterInfo {
  /** Frees its memory, once it is not applied any more. */
  dispose(): Promise<void>
}

/** An adapter that is applied. */
export interface AppliedAdapter {
  /** It comes from the same model's `loadAdapter`. */
  adapter: Adapter
  /** The number by which it is multiplied: 0 is off, and it may be negative. Default 1. */
  scale?: number
}

/** How a text's vector is made of those of its tokens: the mean of all, the first token's or the last one's. */
export type Pooling = 'mean' | 'cls' | 'last'

/** The settings for the GPU. All fields but `powerPreference` and `maxBytes` are for tests and bug reports. */
export interface GpuOptions {
  /** Which GPU to use if there are two. Default `high-performance`. */
  powerPreference?: 'low-power' | 'high-performance'
  /**
   * The most bytes of GPU memory. Layers that do not fit stay in main memory, and each pass uploads them again:
   * answers are the same, but slower. Without `context`, a quarter of the memory is for keys and values. Adapters come
   * on top. Default: as many bytes as the GPU grants.
   */
  maxBytes?: number
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
   * storage, also from Cross-Origin Storage), `upload` (from memory or a local file), `compile` (the GPU's programs), `ready`.
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
  /** Whether the bytes come from the browser's storage, and not from the network. */
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
  /** An earlier download left this many bytes. The load uses them if the server can send a part of the file. */
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
  /** The file came from Cross-Origin Storage, where a site had put it, and not from the network. */
  | { kind: 'shared' }
  /** The file was put into Cross-Origin Storage. This comes after `ready` and `stored`. */
  | { kind: 'offered' }
  /** Cross-Origin Storage did not give the file, or did not take it. */
  | { kind: 'not-shared', why: string }
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
   * Tokens of an answer in a second, estimated for the size of a model; absent without a size. On a CPU, with the
   * threads that a load takes by default.
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
  /** Layers of the model. */
  layers: number
  /** Heads of attention in a layer. */
  heads: number
  /** Tokens in the vocabulary. */
  vocabSize: number
  /** Weights in the model. */
  parameters: number
  /** Bytes of the file. */
  bytes: number
  /** Bytes of GPU memory in buffers; on the CPU, of memory for weights, keys and values. Adapters do not count. */
  gpuBytes: number
  /** The layers that do not fit into the GPU's memory. Each pass uploads them again. */
  streamedLayers: number
  /** Bytes of KV cache for a generation whose text fills the context. */
  cacheBytes: number
  /** Bytes of KV cache that are held after the load. It grows when texts need more, up to what there is. */
  kvBytes: number
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
  /** The number of threads that compute; absent on a GPU. */
  threads?: number
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
   * Sentences for people about choices that may matter to the text or its speed: rules that are not quite
   * those of the file, factors that depend on the context, or what the GPU or the CPU computes wrong.
   */
  notes: string[]
  /**
   * The chat template in use: `file`, `builtin: ` and its name, or `given`. Absent if there is
   * none. Then the model takes only `raw` prompts and ids.
   */
  template?: string
  /**
   * Whether the model was made to embed texts. Then it does not answer: `generate` and all that needs it reject
   * with `embedding-model`.
   */
  embeds: boolean
  /** The pooling of `model.embed`: the load's, or else the file's. Absent if neither says it. */
  pooling?: Pooling
  /** Values of each vector of `model.embed`. */
  dimensions: number
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
