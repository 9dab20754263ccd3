// The conversation with the model in use. This file knows nothing of the page.
import type { Chat, GenerateOptions, LoadOptions, Stats, Token } from 'tritloom'
import { HeldModel } from '../shared/model/held.ts'

/** An answer that is being generated. */
export interface Answer {
  /** Its reasoning and its text, as they come. */
  tokens: AsyncIterable<Token>
  /** Settles after the last token; null if the answer was stopped. */
  stats: Promise<Stats | null>
}

/** One model at a time, and one conversation. */
export class Session extends HeldModel {
  #chat: Chat | null = null

  override async load(source: string | File, options: LoadOptions): Promise<void> {
    this.#chat = null
    await super.load(source, options)
    this.newChat()
  }

  /** Forgets the conversation. */
  newChat() {
    this.stop()
    this.#chat = this.model.createChat()
  }

  send(text: string, options: GenerateOptions): Answer {
    if (!this.#chat) throw new Error('No model is loaded')
    const signal = this.begin()
    const generation = this.#chat.send(text, { ...options, signal })
    // For the page, a stopped answer is no error.
    const stats = generation.stats.catch(error => {
      if (signal.aborted) return null
      throw error
    })
    stats.catch(() => {}) // The tokens report the same error.
    return { tokens: this.untilStopped(generation.tokens(), signal), stats }
  }
}
