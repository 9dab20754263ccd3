// The model in use and the conversation with it; nothing of the page.
import { BitNet, type Chat, type GenerateOptions, type LoadOptions, type ModelInfo, type Stats } from 'ternlight'

/** An answer that is being written. */
export interface Answer {
  pieces: AsyncIterable<string>
  /** Settles after the last piece; null where the answer was stopped before it began. */
  stats: Promise<Stats | null>
}

/** One model at a time, and one conversation. */
export class Session {
  #model: BitNet | null = null
  #chat: Chat | null = null
  #answering = new AbortController()

  /** Replaces the model. The old one goes first, as two need not fit into the GPU's memory. */
  async load(source: string | File, options: LoadOptions): Promise<void> {
    this.stop()
    await this.#model?.dispose()
    this.#model = this.#chat = null
    const model = await BitNet.load(source, options)
    if (options.signal?.aborted) {
      await model.dispose() // Too late to be wanted: a newer load may be under way.
      throw options.signal.reason
    }
    this.#model = model
    this.newChat()
  }

  get info(): ModelInfo {
    return this.#loaded().info
  }

  /** Forgets the conversation. */
  newChat() {
    this.stop()
    this.#chat = this.#loaded().createChat()
  }

  send(text: string, options: GenerateOptions): Answer {
    this.#loaded()
    this.#answering = new AbortController()
    const { signal } = this.#answering
    const generation = this.#chat!.send(text, { ...options, signal })
    // Stopping is no error here, whichever way the generation tells of it.
    const stats = generation.stats.catch(error => {
      if (signal.aborted) return null
      throw error
    })
    stats.catch(() => {}) // The pieces report the same error.
    return { pieces: untilStopped(generation, signal), stats }
  }

  /** Ends the answer being written, if there is one. */
  stop() {
    this.#answering.abort()
  }

  #loaded(): BitNet {
    if (!this.#model) throw new Error('No model is loaded')
    return this.#model
  }
}

async function* untilStopped(pieces: AsyncIterable<string>, signal: AbortSignal) {
  try {
    yield* pieces
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
