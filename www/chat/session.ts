// The model in use, and the answers of its conversations. This file knows nothing of the page.
import type { Chat, Generation, GenerateOptions, LoadOptions, Message, Stats, Token } from 'tritloom'
import { HeldModel } from '../shared/model/held.ts'

/** An answer that is being generated. */
export interface Answer {
  /** Its reasoning, its text and its calls, as they come. */
  tokens: AsyncIterable<Token>
  /** Settles after the last token; null if the answer was stopped. */
  stats: Promise<Stats | null>
  /** The calls with which it has ended. */
  calls: Generation['toolCalls']
}

/** One model at a time, and any number of conversations, which may answer at the same time. */
export class Session extends HeldModel {
  /** The chat of each conversation. It knows which turns the model does not see any more. */
  #chats = new Map<string, Chat>()

  override async load(source: string | File, options: LoadOptions): Promise<void> {
    this.#chats.clear()
    await super.load(source, options)
  }

  /** Answers the last of the messages, which is one of the user or results of tools. */
  answer(conversation: string, messages: readonly Message[], options: GenerateOptions, signal: AbortSignal): Answer {
    let start = messages.length - 1
    while (messages[start]!.role === 'tool' && messages[start - 1]?.role === 'tool') start -= 1
    const last = messages[start]!
    const asked = last.role === 'tool' ? messages.slice(start) : last.content
    const before = messages.slice(0, start)
    return this.#following(this.#chat(conversation, before).send(asked, { ...options, signal }), signal)
  }

  /** Lets the last of the messages go on, which is an answer. */
  goOn(conversation: string, messages: readonly Message[], options: GenerateOptions, signal: AbortSignal): Answer {
    // Neither reasoning nor calls come in an answer that is begun.
    const { thinking: _, maxThinkingTokens: _m, tools: _t, toolChoice: _c, ...rest } = options
    return this.#following(this.#chat(conversation, messages).continue({ ...rest, signal }), signal)
  }

  /** The chat with these messages: that of the turn before, unless the reader has changed something. */
  #chat(conversation: string, messages: readonly Message[]): Chat {
    const known = this.#chats.get(conversation)
    if (known && JSON.stringify(known.messages) === JSON.stringify(messages)) return known
    const chat = this.model.createChat({ messages, overflow: 'slide' })
    this.#chats.set(conversation, chat)
    return chat
  }

  #following(generation: Generation, signal: AbortSignal): Answer {
    // For the page, a stopped answer is no error.
    const stats = generation.stats.then(
      all => (signal.aborted ? null : all),
      error => {
        if (signal.aborted) return null
        throw error
      }
    )
    stats.catch(() => {}) // The tokens report the same error.
    return { tokens: this.untilStopped(generation.tokens(), signal), stats, calls: () => generation.toolCalls() }
  }
}
