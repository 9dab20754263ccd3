// The model in use, and the conversation with it. This file knows nothing of the page.
import { BitNet, BitNetError } from 'tritloom'
import type { Chat, GenerateOptions, LoadOptions, ModelInfo, Stats, Token } from 'tritloom'

/** An answer that is being generated. */
export interface Answer {
  /** Its reasoning and its text, as they come. */
  tokens: AsyncIterable<Token>
  /** Settles after the last token; null if the answer was stopped. */
  stats: Promise<Stats | null>
}

/** One model at a time, and one conversation. */
export class Session {
  #model: BitNet | null = null
  #chat: Chat | null = null
  #isLost = false
  #isAnswering = false
  #answering = new AbortController()
  #onLost: () => void

  /** `onLost` is called when the GPU is lost and no answer is being generated. */
  constructor(onLost: () => void) {
    this.#onLost = onLost
  }

  /** Replaces the model. The old one is freed first, because the GPU may not have room for both. */
  async load(source: string | File, options: LoadOptions): Promise<void> {
    this.stop()
    await this.#model?.dispose()
    this.#model = this.#chat = null
    const model = await BitNet.load(source, options)
    if (options.signal?.aborted) {
      await model.dispose() // The abort came too late for `load` to notice.
      throw options.signal.reason
    }
    this.#model = model
    this.#isLost = false
    this.newChat()
    void this.#watch(model)
  }

  get info(): ModelInfo {
    return this.#loaded().info
  }

  /** Whether the GPU was lost since the last answer. The next answer restores the model. */
  get isLost(): boolean {
    return this.#isLost
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
    // For the page, a stopped answer is no error.
    const stats = generation.stats.catch(error => {
      if (signal.aborted) return null
      throw error
    })
    stats.catch(() => {}) // The tokens report the same error.
    return { tokens: this.#untilStopped(generation.tokens(), signal), stats }
  }

  /** Stops the answer that is being generated, if there is one. */
  stop() {
    this.#answering.abort()
  }

  /** Watches for losses while the model is in use. After `dispose()` there are none. */
  async #watch(model: BitNet) {
    for (;;) {
      await model.lost
      if (model !== this.#model) return
      const isKnown = this.#isLost || this.#isAnswering
      this.#isLost = true
      if (!isKnown) this.#onLost()
    }
  }

  async *#untilStopped(tokens: AsyncIterable<Token>, signal: AbortSignal) {
    this.#isAnswering = true
    try {
      for await (const token of tokens) {
        this.#isLost = false
        yield token
      }
    } catch (error) {
      if (error instanceof BitNetError && error.code === 'device-lost') this.#isLost = true
      if (!signal.aborted) throw error
    } finally {
      this.#isAnswering = false
    }
  }

  #loaded(): BitNet {
    if (!this.#model) throw new Error('No model is loaded')
    return this.#model
  }
}
