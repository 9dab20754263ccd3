// The options and results of an index, and what it asks of a model.
import type { AbortOptions, EmbedOptions, ModelInfo, Pooling } from '../types.js'

/** The part of a model that an index needs. A `BitNet` has it. */
export interface Embedder {
  info: Pick<ModelInfo, 'name' | 'architecture' | 'parameters' | 'bytes' | 'contextLength' | 'pooling' | 'embeds'>
  embed(texts: readonly string[], options?: EmbedOptions): Promise<Float32Array[]>
  countTokens(text: string): Promise<number>
  /** Names what is applied to the model, on which its vectors depend: its adapters. Nothing by default. */
  readonly adaptersHash?: string
}

/** Options of `createIndex`. A name that is not listed is `bad-option`. */
export interface IndexOptions {
  /** The name under which the index is kept. Each name is an index of its own. Default `index`. */
  name?: string
  /**
   * Where it is kept. `indexeddb` (default): in this browser, for the next visit. `memory`: as long as the
   * index is referred to, as in Node, which has no IndexedDB.
   */
  storage?: 'indexeddb' | 'memory'
  /** The pooling of all its vectors. Default: `info.pooling`. Without either, `bad-option`. */
  pooling?: Pooling
  /** How many values of each vector are kept. Only for models that were trained for it. Default: all. */
  dimensions?: number
  /**
   * A sentence that describes the task of a query. See `EmbedOptions`. Default: that of `task: 'query'`, and none for
   * a model that was not made to embed.
   */
  instruction?: string
  /** The longest passage, in UTF-16 code units, from 64 to 65536. Default 800. Texts that are there keep their passages. */
  passageLength?: number
}

/** A text to be found. `M` is the type of its metadata. */
export interface IndexedText<M = unknown> {
  /** Its name in the index. A text with the id of another replaces that. */
  id: string
  text: string
  /** Any value that can be cloned. It is kept with the text, and comes with what is found. */
  metadata?: M
}

/** The progress of `addMany`, of the texts that it has taken so far. */
export interface IndexProgress {
  /** Texts that are in the index. */
  done: number
  /** How many of them were there already, with the same text: only their metadata are new. */
  unchanged: number
  /** Passages that were embedded, of texts that need not be in the index yet. */
  passages: number
}

export interface AddManyOptions extends AbortOptions {
  /** Gets the progress. If it throws, that is reported as an uncaught error and does not stop the call. */
  onProgress?: (progress: IndexProgress) => void
}

export interface SearchOptions<M = unknown> extends AbortOptions {
  /** The most results. Default 10. */
  k?: number
  /**
   * Says whether the passages of a text may be found. It is called at most once for each text and search, and must
   * not change the metadata. If it throws, the search rejects with that.
   */
  filter?: (metadata: M, id: string) => boolean
}

/** A passage that was found. */
export interface Found<M = unknown> {
  /** The id of its text. */
  id: string
  metadata: M
  /** The passage itself. */
  text: string
  /** Which passage of its text it is, from 0. */
  passage: number
  /** The cosine of the query and the passage, from -1 to 1. */
  score: number
}
