import { badOption, checkMessages, checkOptions, checkSignal, checkText, signalOf } from '../check.js'
import { unlessAborted } from './abort.js'
import { Generation } from '../generation.js'
import type { Start } from '../generation.js'
import type { AbortOptions, ChatOptions, GenerateOptions, Message, Stats, Token } from '../types.js'

/** The part of a model that a chat needs. */
export interface ChatModel {
  /**
   * Starts a run. `input` is called when the run begins, and not when it is queued, because its
   * input includes the answers before it.
   */
  start(input: () => Promise<readonly Message[]>, options: GenerateOptions): Start
  /** The tokens of a conversation. */
  count(messages: readonly Message[]): Promise<number>
  /** Saves a conversation with its keys and values from the KV cache, and a note. */
  save(messages: readonly Message[], note: string, signal?: AbortSignal): Promise<Blob>
  /** The most tokens of prompt and answer together. */
  contextLength: number
}

/** The least share of the context for an answer, unless fewer tokens are wanted. */
const ANSWER_SHARE = 1 / 4
/**
 * If turns have to be left out, the others may fill this share of the context. Then the next turns
 * find room without leaving out more, and the KV cache still has everything before them.
 */
const KEPT_SHARE = 1 / 2

/** A question and its answer. */
interface Exchange {
  user: Message
  answer?: Message
}

/** The saved form of a chat, as JSON, without its keys and values. */
interface Note {
  before: readonly Message[]
  /** Questions and answers, in turn. */
  said: readonly Message[]
  dropped: number
  overflow: NonNullable<ChatOptions['overflow']>
}

/**
 * A conversation. Its beginning stays computed on the GPU, so that each turn computes only its new
 * tokens. Made by `model.createChat()`.
 */
export class Chat {
  #model: ChatModel
  #overflow: NonNullable<ChatOptions['overflow']>
  /** How many messages after the system's are left out. */
  #dropped = 0
  /** The messages with which the conversation was created. */
  #before: readonly Message[]
  #exchanges: Exchange[] = []
  /** The end of the last answer. */
  #last: Promise<unknown> = Promise.resolve()

  /** @internal */
  constructor(
    model: ChatModel, before: readonly Message[], overflow: ChatOptions['overflow'] = 'error'
  ) {
    this.#model = model
    this.#before = before
    this.#overflow = overflow
  }

  /**
   * The messages so far, as copies. The first ones are those with which the chat was created.
   * Messages that the model does not see any more, because of `overflow: 'slide'`, are included.
   */
  get messages(): Message[] {
    return [...this.#before, ...this.#exchanges.flatMap(said)].map(message => ({ ...message }))
  }

  /**
   * Sends a message and generates the answer.
   *
   * When the answer ends, it becomes part of the conversation. If it was stopped, the text so far
   * becomes part of it. The reasoning does not, so the model does not see it again. If an answer
   * failed, or was stopped before its first text, its message is forgotten. A second call waits for
   * the first.
   *
   * Throws `bad-option` for a text that is no string and for options that are no object. Any other
   * failure rejects the readers of the answer: `bad-option` for a wrong option, `context-full` if
   * the conversation is too long, `device-lost`, `disposed`.
   */
  send(text: string, options: GenerateOptions = {}): Generation {
    checkText('text', text)
    checkOptions(options)
    const { signal, ...rest } = options
    checkSignal(signal)
    const exchange: Exchange = { user: { role: 'user', content: text } }
    this.#exchanges.push(exchange)
    let dropped = 0
    const input = async () => {
      const seen = await this.#seen(this.#until(exchange), rest)
      dropped = seen.dropped
      return seen.messages
    }
    const run = this.#model.start(input, rest)
    return new Generation((onToken, stop) => {
      const answer = this.#last.then(() => this.#answer(exchange, run, () => dropped, onToken, stop))
      this.#last = answer.catch(() => {})
      return answer
    }, signal)
  }

  /**
   * Saves the conversation, with its keys and values if the GPU still has them. A message without
   * an answer is not saved. `model.restoreChat()` makes a chat of it again, even after the page was
   * reloaded. It takes about as many bytes as the conversation has in the KV cache:
   * `info.cacheBytes` for a whole context. Waits for the answers that run.
   *
   * Rejects with `device-lost`, `disposed`, or the reason of `signal`.
   */
  async save(options: AbortOptions = {}): Promise<Blob> {
    const signal = signalOf(options)
    await unlessAborted(signal, () => this.#last)
    const said = this.#answered()
    const before = this.#before
    const note: Note = { before, said, dropped: this.#dropped, overflow: this.#overflow }
    return this.#model.save(without([...before, ...said], this.#dropped), JSON.stringify(note), signal)
  }

  /**
   * The chat that a note describes.
   * @internal
   */
  static restored(model: ChatModel, note: string): Chat {
    const { before, said, dropped, overflow } = read(note)
    const chat = new Chat(model, before, overflow)
    chat.#dropped = dropped
    for (let index = 0; index + 1 < said.length; index += 2) {
      chat.#exchanges.push({ user: said[index]!, answer: said[index + 1]! })
    }
    return chat
  }

  /** Forgets everything except the messages with which the chat was created. */
  reset(): void {
    this.#dropped = 0
    this.#exchanges = []
  }

  /**
   * Copies the conversation as it is now. The two go on independently. A message without an answer
   * is not copied.
   */
  fork(): Chat {
    const chat = new Chat(this.#model, this.#before, this.#overflow)
    chat.#dropped = this.#dropped
    chat.#exchanges = this.#exchanges.filter(exchange => exchange.answer)
    return chat
  }

  async #answer(
    exchange: Exchange, run: Start, dropped: () => number, onToken: (token: Token) => void,
    stop: AbortSignal
  ): Promise<Stats> {
    let content = ''
    try {
      const stats = await run(token => {
        // Text that comes after the stop is not shown.
        if (!stop.aborted && token.channel === 'answer') content += token.text
        onToken(token)
      }, stop)
      return this.#overflow === 'slide' ? { ...stats, droppedMessages: dropped() } : stats
    } catch (error) {
      content = ''
      throw error
    } finally {
      if (!content) this.#exchanges = this.#exchanges.filter(other => other !== exchange)
      // After a reset the exchange is in no conversation.
      else if (this.#exchanges.includes(exchange)) {
        exchange.answer = { role: 'assistant', content }
        this.#dropped = dropped()
      }
    }
  }

  /**
   * For a conversation that ends with a question: the messages that the model sees of it, and how
   * many are left out.
   */
  async #seen(
    messages: Message[], { maxTokens }: GenerateOptions
  ): Promise<{ messages: Message[], dropped: number }> {
    if (this.#overflow === 'error') return { messages, dropped: 0 }
    const { contextLength, count } = this.#model
    let dropped = this.#dropped
    let seen = without(messages, dropped)
    let tokens = await count(seen)
    // The crate refuses a wrong `maxTokens`, so no turn is left out because of it.
    const wanted = Number.isInteger(maxTokens) ? Number(maxTokens) : Infinity
    const answer = Math.min(wanted, contextLength * ANSWER_SHARE)
    if (tokens + answer <= contextLength) return { messages: seen, dropped }
    for (const [index, { role }] of messages.slice(firstSaid(messages)).entries()) {
      if (role !== 'user' || index <= dropped) continue
      seen = without(messages, index)
      tokens = await count(seen)
      // A message that is too long by itself fails. The chat keeps the turns before it.
      if (tokens <= contextLength) dropped = index
      if (tokens <= contextLength * KEPT_SHARE) break
    }
    return { messages: seen, dropped }
  }

  /**
   * The conversation up to a question. Earlier questions without an answer have failed and are left
   * out.
   */
  #until(exchange: Exchange): Message[] {
    const earlier = Math.max(0, this.#exchanges.indexOf(exchange))
    return [...this.#before, ...this.#answered(earlier), exchange.user]
  }

  /** The questions that have an answer, with their answers, among the first `count` exchanges. */
  #answered(count = this.#exchanges.length): Message[] {
    return this.#exchanges.slice(0, count).filter(({ answer }) => answer).flatMap(said)
  }
}

/** The index of the first message that is not of the system. */
function firstSaid(messages: readonly Message[]): number {
  const first = messages.findIndex(({ role }) => role !== 'system')
  return first < 0 ? messages.length : first
}

/** The messages, without the first `dropped` after the system's. */
function without(messages: readonly Message[], dropped: number): Message[] {
  const first = firstSaid(messages)
  return [...messages.slice(0, first), ...messages.slice(first + dropped)]
}

/** Reads a note. It may be written by anyone, so everything in it is checked. */
function read(note: string): Note {
  try {
    const { before, said, dropped, overflow } = JSON.parse(note) as Note
    checkMessages(before)
    checkMessages(said)
    const inTurn = said.every(({ role }, index) => role === (index % 2 ? 'assistant' : 'user'))
    const isCount = Number.isInteger(dropped) && dropped >= 0 && dropped <= before.length + said.length
    const overflows = overflow === 'error' || overflow === 'slide'
    if (inTurn && said.length % 2 === 0 && isCount && overflows) {
      return { before, said, dropped, overflow }
    }
  } catch { /* It is no note. */ }
  throw badOption('chat', 'is damaged')
}

const said = ({ user, answer }: Exchange): Message[] => answer ? [user, answer] : [user]
