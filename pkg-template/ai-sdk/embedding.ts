// An embedding model of the AI SDK.
// For apps whose TypeScript library is older than `await using`:
/// <reference lib="esnext.disposable" preserve="true" />
import { failureOf, unsupported } from './errors.js'
import type { Held } from './held.js'
import type { EmbedCallOptions, EmbedResult, TritloomAvailability, TritloomEmbeddingOptions } from './types.js'
import { checkOptions } from '../check.js'
import { unlessAborted } from '../page/abort.js'

/**
 * A model for `embed` and `embedMany` of the npm package `ai`: its `EmbeddingModelV4`. It is loaded by its first
 * call, or by `createSessionWithProgress`. Failures are as those of `TritloomLanguageModel`.
 */
export class TritloomEmbeddingModel {
  readonly specificationVersion = 'v4'
  readonly provider = 'tritloom'
  /** The address of the model, or its name if it has none. */
  readonly modelId: string
  /** No limit: many texts share a pass, so all come in one call. */
  readonly maxEmbeddingsPerCall = Infinity
  /** Calls at once wait for each other. */
  readonly supportsParallelCalls = false
  #held: Held

  /** @internal */
  constructor(modelId: string, held: Held) {
    this.modelId = modelId
    this.#held = held
  }

  /** Whether the model is loaded. */
  get isModelInitialized(): boolean {
    return this.#held.isReady
  }

  /** Whether the model can be had here. Rejects with `bad-option` for an address that is none. */
  availability(): Promise<TritloomAvailability> {
    return this.#held.availability()
  }

  /** Loads the model, as that of a `TritloomLanguageModel`. */
  async createSessionWithProgress(onProgress?: (progress: number) => void): Promise<this> {
    try {
      await this.#held.loadWithProgress(onProgress)
      return this
    } catch (error) {
      throw failureOf(error, this.modelId)
    }
  }

  /** The vectors of texts. For `embed` and `embedMany`. */
  async doEmbed({ values, dimensions, abortSignal: signal, providerOptions }: EmbedCallOptions): Promise<EmbedResult> {
    try {
      const options = (providerOptions?.['tritloom'] ?? {}) as TritloomEmbeddingOptions
      checkOptions(options, ['task', 'instruction', 'prefix', 'pooling', 'truncate'])
      const model = await unlessAborted(signal, () => this.#held.load())
      if (!model.embed) throw unsupported('model', 'embeddings', 'it has no function `embed`')
      let tokens = 0
      const embeddings = await model.embed(values, {
        ...options, ...(dimensions === undefined ? {} : { dimensions }), ...(signal && { signal }),
        onProgress: progress => { tokens = progress.tokens }
      })
      return { embeddings: embeddings.map(vector => [...vector]), usage: { tokens }, warnings: [] }
    } catch (error) {
      throw failureOf(error, this.modelId)
    }
  }

  /** Frees the GPU's memory, and ends a load. The next call loads the model again. */
  dispose(): Promise<void> {
    return this.#held.dispose()
  }

  /** `dispose()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }
}
