/** What can go wrong. The same list as `Error::CODES` in the crate, which a test compares. */
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
  | 'http'
  | 'network'
  | 'integrity'
  | 'not-cached'
  | 'storage-full'
  | 'context-full'
  | 'bad-option'
  | 'disposed'
  | 'internal'

/** Where a model may come from. The bytes tell what it is, never the name. */
export type Source = string | URL | Request | Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array>

export interface LoadOptions {
  /** Stops the download, the upload and the compiling; `load` rejects with its reason. */
  signal?: AbortSignal
  onProgress?: (progress: Progress) => void
  /**
   * For http(s) addresses: `use` (default) loads what is stored on this device, else downloads and
   * stores, going on with what an earlier download has left; `refresh` downloads anew; `off` stores
   * nothing. `only` never asks the network: it fails with `not-cached` where the model is not
   * whole on this device, and with `storage-full` where that is because it did not fit when it was
   * downloaded (which by itself is no failure: that load goes on without storing, and says so in
   * its progress).
   */
  cache?: 'use' | 'refresh' | 'only' | 'off'
  /** `sha256-` and the base64 of the whole file's hash, as in subresource integrity. */
  integrity?: string
  /**
   * Milliseconds without a byte after which a request is given up and made again; 15 000 by
   * default. What has come is not fetched again where the server allows to go on.
   */
  stallTimeout?: number
  /**
   * Tokens the model can hold in mind; by default as many as it was made for, or as fit into 1 GiB of keys
   * and values.
   */
  context?: number
  /** `true` (default): a worker of our own; `false`: this thread; or one made from `ternlight/worker`. */
  worker?: boolean | Worker
  /** How keys and values are held: `f16` (default) or `f32`. */
  kv?: 'f16' | 'f32'
  /**
   * How the LM head is held, which changes no token: `f16`, as in the file, or `int8`, as upper and lower
   * bytes in the same memory, of which a greedy token needs hardly more than the upper ones. `auto`
   * (default) is `int8` where that is faster.
   */
  head?: 'auto' | 'f16' | 'int8'
  /** `arm` for files quantised by ARM builds of bitnet.cpp. */
  i2sLayout?: 'x86' | 'arm'
  gpu?: GpuOptions
}

/** Caps, for tests and for bug reports. */
export interface GpuOptions {
  powerPreference?: 'low-power' | 'high-performance'
  limits?: { maxStorageBufferBindingSize?: number, maxBufferSize?: number }
  /**
   * `false`: do without, even where the adapter has it. `packedDot`: whether int8 values are multiplied four at a
   * time or as floats; by default whichever is faster. `software`: whether to go about it as on a CPU.
   */
  features?: { subgroups?: boolean, packedDot?: boolean, software?: boolean }
}

export interface Progress {
  /** Where the bytes come from now (`upload`: memory or a local file), or what else goes on. */
  phase: 'download' | 'cache' | 'upload' | 'compile' | 'ready'
  /** Bytes that are there, of the phase's `total`; with those of an earlier download. */
  loaded: number
  /** 0 while nobody knows. */
  total: number
  /** Of the whole, over all phases, from 0 to 1; never goes back. */
  fraction: number
  fromCache: boolean
  /** Over the last three seconds; while bytes are downloaded, of those. */
  bytesPerSecond: number
  /** At this rate, until the bytes are there; absent while nobody can know. */
  secondsLeft?: number
  /** What has happened so far beside it, in order. A note is reported when it is new. */
  notes: ProgressNote[]
}

/** What a page may want to tell its visitor while a model loads. */
export type ProgressNote =
  /** So many bytes are here from an earlier download, and are not fetched again where the server gives parts. */
  | { kind: 'resumed', bytes: number }
  /** Another model was deleted to make room for this one: the one used longest ago. */
  | { kind: 'evicted', url: string, bytes: number }
  /** The model will have to be downloaded again next time: no room, or no storage at all. */
  | { kind: 'not-stored', why: string }
  /** If the download breaks off, it begins from the start: the server does not allow better. */
  | { kind: 'not-resumable', why: string }
  /** Another tab is downloading this model: its progress is shown, and then its copy is loaded. */
  | { kind: 'waiting' }
  /** What had come could not be used, or not in this way: the load has begun anew. */
  | { kind: 'restarted', why: string }

export interface Availability {
  available: boolean
  /** Why not, for people. */
  reason?: string
  adapter?: string
  features: string[]
  limits: Record<string, number>
  /** The adapter is a CPU: it works, slowly. */
  software: boolean
}

/** A model stored on this device, or a part of one. */
export interface StoredModel {
  url: string
  /** Bytes that are here. */
  bytes: number
  /** Bytes in the whole file, if the server said. */
  total?: number
  complete: boolean
  etag?: string
  /** Milliseconds since 1970. */
  added: number
  used: number
}

/** What a check of a stored model has found. */
export interface Verdict {
  /** All of the model is here, and every byte is as it was stored. */
  whole: boolean
  /** Bytes that are good. */
  bytes: number
  /** Bytes that were not, and are deleted: the next load fetches them, and no others. */
  damagedBytes: number
}

export interface ModelInfo {
  name: string
  architecture: string
  /** Tokens of prompt and answer together. */
  contextLength: number
  vocabSize: number
  parameters: number
  bytes: number
  gpuBytes: number
  adapter: string
  /** Steps the GPU is given per token. */
  dispatchesPerToken: number
  /** The kernel variants in use. */
  kernels: string[]
}

/** How the GPU was lost; the fields are those of `GPUDeviceLostInfo`. */
export interface DeviceLoss {
  /** `destroyed` if someone in the page has called `destroy()` on the device. */
  reason: 'destroyed' | 'unknown'
  /** What the browser says of it, for people; often nothing. */
  message: string
}

export interface Message {
  role: 'system' | 'user' | 'assistant'
  content: string
}

/** What to go on from: a user's turn, a conversation, or tokens as they are. */
export type Input = string | readonly Message[] | Uint32Array

export interface GenerateOptions {
  /** By default as many as fit. */
  maxTokens?: number
  /** 0 (default) always takes the likeliest token. */
  temperature?: number
  /** Draw from so many of the likeliest tokens; 0 (default): all. */
  topK?: number
  /** Draw from the likeliest tokens that make up this share; 1 (default): all. */
  topP?: number
  /** Draw from tokens at least so likely relative to the likeliest; 0 (default): all. */
  minP?: number
  /** The same seed on the same adapter draws the same text; by default another each time. */
  seed?: number
  /** Texts that end the answer; they are not part of it. */
  stop?: string[]
  /**
   * Whether tokens may be foreseen where the text repeats itself, as summaries and edits do, and several
   * taken in one pass. Greedy only, and the same text. By default where it pays: on GPUs.
   */
  promptLookup?: boolean
  signal?: AbortSignal
  /** The string is the prompt itself, not a user's turn in the model's template. */
  raw?: boolean
  /** In a raw string, special tokens are recognised. */
  special?: boolean
}

/** A generated token. A character can take several: its text then comes with the last. */
export interface Token {
  /** Absent for text that was held back and comes at the end. */
  id?: number
  text: string
}

export interface Stats {
  promptTokens: number
  /** Of them, tokens that needed no computing: they are still there from the generation before. */
  reusedTokens: number
  completionTokens: number
  /** Tokens that were foreseen, see `promptLookup`; those of them that the model chose too; and in how many passes. */
  draftedTokens: number
  acceptedTokens: number
  draftPasses: number
  /** Tokens that were computed ahead, and not wanted when it ended. */
  unusedTokens: number
  /** Milliseconds. */
  timeToFirstToken: number
  prefillTokensPerSecond: number
  decodeTokensPerSecond: number
  finishReason: 'stop' | 'length' | 'abort'
}

/** A kernel's share of a step. */
export interface KernelTime {
  /** The kernel and its variant. */
  kernel: string
  /** Dispatches of it. */
  calls: number
  /** All of them together. */
  microseconds: number
  /** What they read and write, each byte at least once. */
  bytes: number
  /** The rate that makes, in GB/s. */
  gigabytesPerSecond: number
  /** Its share of what memory gives at best. */
  share: number
}

/** Where the time of a step goes, by the GPU's own clock. */
export interface Profile {
  /** What memory gives at best, in GB/s: the rate of a kernel that only reads. */
  bandwidth: number
  /** The slowest first. */
  kernels: KernelTime[]
}
