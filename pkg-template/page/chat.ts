import { badOption, checkMessages, checkOptions, checkSignal, checkText, signalOf } from '../check.js'
import { unlessAborted } from './abort.js'
import { Generation } from '../generation.js'
import type { Run } from '../generation.js'
import type { AbortOptions, ChatOptions, GenerateOptions, Message, Stats, Token } from '../types.js'

/** What a chat needs of its model. */
export interface ChatModel {
  /**
   * Starts a run. `input` is called when the run begins, not when it is queued: the answers before
   * it are part of its input.
   */
  start(input: () => Promise<readonly Message[]>, options: GenerateOptions): Run
  /** The tokens of a conversation. */
  count(messages: readonly Message[]): Promise<number>
  /** Saves what the KV cache has of a conversation, and a note. */
  save(messages: readonly Message[], note: string, signal?: AbortSignal): Promise<Blob>
  /** The most tokens of prompt and answer together. */
  contextLength: number
}

/** Of the context, the answer has this share at least, unless fewer tokens are wanted. */
const ANSWER_SHARE = 1 / 4
/**
 * When turns have to be left out, the others may have this share of the context. The next turns then
 * find room without leaving out more, so that the KV cache still has what comes before them.
 */
const KEPT_SHARE = 1 / 2

/** A question and its answer. */
interface Exchange {
  user: Message
  answer?: Message
}

/** What is saved of a chat besides its keys and values: JSON. */
interface Note {
  before: readonly Message[]
  /** Questions and answers in turn. */
  said: readonly Message[]
  dropped: number
  overflow: NonNullable<ChatOptions['overflow']>
}

/**
 * A conversation. Its beginning stays computed on the GPU, so that each turn computes only what is
 * new. Made by `model.createChat()`.
 */
export class Chat {
  #model: ChatModel
  #overflow: NonNullable<ChatOptions['overflow']>
  /** Messages after the system's that are left out. */
  #dropped = 0
  /** The messages that the conversation was created with. */
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
   * The messages so far, as copies: first those that the chat was created with. Those that the model
   * does not see any more, by `overflow: 'slide'`, are among them.
   */
  get messages(): Message[] {
    return [...this.#before, ...this.#exchanges.flatMap(said)].map(message => ({ ...message }))
  }

  /**
   * Sends a message and generates the answer.
   *
   * When the answer ends it becomes part of the conversation, also if it was stopped: then as far
   * as it got. The reasoning before it does not, so the model does not see it again. A message is
   * forgotten if its answer failed, or was stopped before its first text. A second call waits for
   * the first.
   *
   * Throws `bad-option` for a text that is no string and for options that are no object. Whatever
   * else fails rejects the readers of the answer: `bad-option` for a wrong option, `context-full`
   * if the conversation is too long, `device-lost`, `disposed`.
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
   * Saves the conversation, and its keys and values as far as the GPU still has them. A message that
   * has no answer yet is not saved. `model.restoreChat()` makes a chat of it again, also after the
   * page was loaded anew. It takes about as many bytes as the conversation has in the KV cache:
   * `info.cacheBytes` of a whole context. Waits for the answers that run.
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
   * The chat that a note tells of.
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

  /** Forgets everything but the messages that the chat was created with. */
  reset(): void {
    this.#dropped = 0
    this.#exchanges = []
  }

  /**
   * Copies the conversation as it is now. The two go on independently. A message that has no answer
   * yet is not copied.
   */
  fork(): Chat {
    const chat = new Chat(this.#model, this.#before, this.#overflow)
    chat.#dropped = this.#dropped
    chat.#exchanges = this.#exchanges.filter(exchange => exchange.answer)
    return chat
  }

  async #answer(
    exchange: Exchange, run: Run, dropped: () => number, onToken: (token: Token) => void,
    stop: AbortSignal
  ): Promise<Stats> {
    let content = ''
    try {
      const stats = await run(token => {
        // Nobody sees what comes after the stop.
        if (!stop.aborted && token.channel === 'answer') content += token.text
        onToken(token)
      }, stop)
      return this.#overflow === 'slide' ? { ...stats, droppedMessages: dropped() } : stats
    } catch (error) {
      content = ''
      throw error
    } finally {
      if (!content) this.#exchanges = this.#exchanges.filter(other => other !== exchange)
      // After a reset the exchange belongs to no conversation.
      else if (this.#exchanges.includes(exchange)) {
        exchange.answer = { role: 'assistant', content }
        this.#dropped = dropped()
      }
    }
  }

  /** The messages that the model sees of a conversation that ends with a question, and how many are left out. */
  async #seen(
    messages: Message[], { maxTokens }: GenerateOptions
  ): Promise<{ messages: Message[], dropped: number }> {
    if (this.#overflow === 'error') return { messages, dropped: 0 }
    const { contextLength, count } = this.#model
    let dropped = this.#dropped
    let seen = without(messages, dropped)
    let tokens = await count(seen)
    // The crate refuses a wrong `maxTokens`: no turn is left out for it.
    const wanted = Number.isInteger(maxTokens) ? Number(maxTokens) : Infinity
    const answer = Math.min(wanted, contextLength * ANSWER_SHARE)
    if (tokens + answer <= contextLength) return { messages: seen, dropped }
    for (const [index, { role }] of messages.slice(firstSaid(messages)).entries()) {
      if (role !== 'user' || index <= dropped) continue
      seen = without(messages, index)
      tokens = await count(seen)
      // If the message is too long by itself, it fails, and the turns before it stay.
      if (tokens <= contextLength) dropped = index
      if (tokens <= contextLength * KEPT_SHARE) break
    }
    return { messages: seen, dropped }
  }

  /** The conversation up to a question. Questions before it without an answer have failed. */
  #until(exchange: Exchange): Message[] {
    const earlier = Math.max(0, this.#exchanges.indexOf(exchange))
    return [...this.#before, ...this.#answered(earlier), exchange.user]
  }

  /** The questions that have an answer, with it, among the first `count`. */
  #answered(count = this.#exchanges.length): Message[] {
    return this.#exchanges.slice(0, count).filter(({ answer }) => answer).flatMap(said)
  }
}

/** The index of the first message that is not the system's. */
function firstSaid(messages: readonly Message[]): number {
  const first = messages.findIndex(({ role }) => role !== 'system')
  return first < 0 ? messages.length : first
}

/** The messages but for the first `dropped` after the system's. */
function without(messages: readonly Message[], dropped: number): Message[] {
  const first = firstSaid(messages)
  return [...messages.slice(0, first), ...messages.slice(first + dropped)]
}

/** Reads a note, which anybody may have written. */
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
