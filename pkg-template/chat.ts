import { checkOptions, checkSignal, checkText } from './check.js'
import { Generation } from './generation.js'
import type { Run } from './generation.js'
import type { GenerateOptions, Message, Token } from './types.js'

/**
 * How a chat starts a run. `input` is called when the run begins, not when it is queued: the
 * answers before it are part of its input.
 */
export type Start = (input: () => readonly Message[], options: GenerateOptions) => Run

/** A question and its answer. */
interface Exchange {
  user: Message
  answer?: Message
}

/**
 * A conversation. Its beginning stays computed on the GPU, so that each turn computes only what is
 * new. Made by `model.createChat()`.
 */
export class Chat {
  #start: Start
  /** The messages that the conversation was created with. */
  #before: readonly Message[]
  #exchanges: Exchange[] = []
  /** The end of the last answer. */
  #last: Promise<unknown> = Promise.resolve()

  /** @internal */
  constructor(start: Start, before: readonly Message[]) {
    this.#start = start
    this.#before = before
  }

  /** The messages so far, as copies: first those that the chat was created with. */
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
    const run = this.#start(() => this.#until(exchange), rest)
    return new Generation((onToken, stop) => {
      const answer = this.#last.then(() => this.#answer(exchange, run, onToken, stop))
      this.#last = answer.catch(() => {})
      return answer
    }, signal)
  }

  /** Forgets everything but the messages that the chat was created with. */
  reset(): void {
    this.#exchanges = []
  }

  /**
   * Copies the conversation as it is now. The two go on independently. A message that has no answer
   * yet is not copied.
   */
  fork(): Chat {
    const chat = new Chat(this.#start, this.#before)
    chat.#exchanges = this.#exchanges.filter(exchange => exchange.answer)
    return chat
  }

  async #answer(
    exchange: Exchange, run: Run, onToken: (token: Token) => void, stop: AbortSignal
  ) {
    let content = ''
    try {
      return await run(token => {
        // Nobody sees what comes after the stop.
        if (!stop.aborted && token.channel === 'answer') content += token.text
        onToken(token)
      }, stop)
    } catch (error) {
      content = ''
      throw error
    } finally {
      if (content) exchange.answer = { role: 'assistant', content }
      else this.#exchanges = this.#exchanges.filter(other => other !== exchange)
    }
  }

  /** The conversation up to a question. Questions before it without an answer have failed. */
  #until(exchange: Exchange): Message[] {
    const earlier = this.#exchanges.slice(0, Math.max(0, this.#exchanges.indexOf(exchange)))
    const answered = earlier.filter(({ answer }) => answer)
    return [...this.#before, ...answered.flatMap(said), exchange.user]
  }
}

const said = ({ user, answer }: Exchange): Message[] => answer ? [user, answer] : [user]
