// An embedding model of the AI SDK.
import { failureOf, unsupported } from './errors.js'
import { OnDemand } from './on-demand.js'
import type { EmbedCallOptions, EmbedResult, TritloomEmbeddingOptions } from './types.js'
import { checkOptions } from '../check.js'
import { unlessAborted } from '../page/abort.js'

/**
 * A model for `embed` and `embedMany` of the npm package `ai`: its `EmbeddingModelV4`. It is loaded by its first
 * call, or by `createSessionWithProgress`. Failures are as those of `TritloomLanguageModel`.
 */
export class TritloomEmbeddingModel extends OnDemand {
  /** No limit: many texts share a pass, so all come in one call. */
  readonly maxEmbeddingsPerCall = Infinity
  /** Calls at once wait for each other. */
  readonly supportsParallelCalls = false

  /** The vectors of texts. For `embed` and `embedMany`. */
  async doEmbed({ values, dimensions, abortSignal: signal, providerOptions }: EmbedCallOptions): Promise<EmbedResult> {
    try {
      const options = (providerOptions?.['tritloom'] ?? {}) as TritloomEmbeddingOptions
      checkOptions(options, ['task', 'instruction', 'prefix', 'pooling', 'truncate'])
      const model = await unlessAborted(signal, () => this.held.load())
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
}
