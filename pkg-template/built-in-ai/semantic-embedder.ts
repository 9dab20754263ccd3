// `SemanticEmbedder`, as Chromium's draft has it, over `model.embed`.
import { availabilityOf, created, Life } from './creation.js'
import type { Held, Wanted } from './creation.js'
import { exception } from './errors.js'
import { dictionary, isSequence, oneOf, required, sequence, text } from './idl.js'
import type { Availability } from './shared-model.js'
import type { CreateOptions, SignalOptions } from './types.js'
import { unlessAborted } from '../page/abort.js'
import type { EmbedOptions } from '../types.js'

/** The use of vectors. */
export type SemanticEmbedderTaskType =
  'semantic-similarity' | 'clustering' | 'classification' | 'retrieval-query' | 'retrieval-document'

/** Options of `embed()`. */
export interface SemanticEmbedderEmbedOptions extends SignalOptions {
  /** Default: the texts as they are, as for `retrieval-document`. */
  taskType?: SemanticEmbedderTaskType
}

/** The result of `embed()`. */
export interface SemanticEmbedderResult {
  /** A vector of length 1 for each text. */
  embeddings: { values: Float32Array }[]
}

/** The tasks of `model.embed`. Texts that are grouped or sorted are compared with each other. */
const TASKS: Record<SemanticEmbedderTaskType, NonNullable<EmbedOptions['task']>> = {
  'semantic-similarity': 'similarity',
  'clustering': 'similarity',
  'classification': 'similarity',
  'retrieval-query': 'query',
  'retrieval-document': 'document'
}
const TASK_TYPES = Object.keys(TASKS) as SemanticEmbedderTaskType[]

const KEY = Symbol('SemanticEmbedder')

/**
 * Gives the vectors of texts: Chromium's draft of a `SemanticEmbedder`. Errors are those of `LanguageModel`.
 */
export class SemanticEmbedder {
  #life: Life

  private constructor(key: typeof KEY, held: Held, signal?: AbortSignal) {
    if (key !== KEY) throw new TypeError('Illegal constructor')
    this.#life = new Life(held, signal)
  }

  /** Whether a session can be had, now or after a download. */
  static async availability(): Promise<Availability> {
    return availabilityOf(wantedOf({}))
  }

  /**
   * Begins a session. The first one of the page loads the model. Rejects as `LanguageModel.create` does, and with
   * `NotSupportedError` if neither the model nor its load says how to pool.
   */
  static async create(options: CreateOptions = {}): Promise<SemanticEmbedder> {
    const given = dictionary(options, 'options')
    return created(wantedOf(given), given, (held, signal) => {
      if (held.model.info.pooling === undefined) {
        throw exception('NotSupportedError', 'the model names no pooling: `configure({ embedder: { url, load: { pooling } } })`')
      }
      return new SemanticEmbedder(KEY, held, signal)
    })
  }

  /** The vectors of a text or of several. */
  async embed(input: string | Iterable<string>, options: SemanticEmbedderEmbedOptions = {}): Promise<SemanticEmbedderResult> {
    const texts = isSequence(input) ? sequence(input, 'the texts').map(text) : [required(input, 'the text')]
    const { signal: given, taskType } = dictionary(options, 'options')
    const task = taskType === undefined ? {} : { task: TASKS[oneOf(taskType, TASK_TYPES, 'taskType')] }
    const signal = this.#life.signal(given)
    return unlessAborted(signal, () => this.#life.run(signal, async () => {
      const vectors = await this.#life.held.model.embed(texts, { ...task, signal })
      return { embeddings: vectors.map(values => ({ values })) }
    }))
  }

  /** Ends the session: its calls reject with `InvalidStateError`, now and later. */
  destroy(): void {
    this.#life.end()
  }
}

const wantedOf = (options: object): Wanted =>
  ({ name: 'SemanticEmbedder', ours: SemanticEmbedder, options, isSupported: true, languages: [], embeds: true })
