import { checkSignal } from './check.js'
import { Generation } from './generation.js'
import type { Run } from './generation.js'
import type { GenerateOptions, Message, Token } from './types.js'

/** How a chat starts a run. Its input is made when its turn comes: the answers before belong to it. */
export type Start = (input: () => readonly Message[], options: GenerateOptions) => Run

interface Turn {
  user: Message
  answer?: Message
}

/** A conversation. The model remembers it: each turn computes only what is new. */
export class Chat {
  #start: Start
  #before: readonly Message[]
  #turns: Turn[] = []

  /** @internal */
  constructor(start: Start, before: readonly Message[]) {
    this.#start = start
    this.#before = before
  }

  /** What was said so far. */
  get messages(): Message[] {
    return [...this.#before, ...this.#turns.flatMap(({ user, answer }) => (answer ? [user, answer] : [user]))]
      .map(message => ({ ...message }))
  }

  /**
   * Says something. When the answer has ended it is part of the conversation, also one that was
   * stopped, as far as it went; a turn that failed, or was stopped before it began, is forgotten.
   */
  send(text: string, options: GenerateOptions = {}): Generation {
    const { signal, ...rest } = options
    checkSignal(signal)
    const turn: Turn = { user: { role: 'user', content: text } }
    this.#turns.push(turn)
    const run = this.#start(() => this.#until(turn), rest)
    return new Generation((onToken, stop) => this.#answer(turn, run, onToken, stop), signal)
  }

  /** Forgets all that was said since the beginning. */
  reset(): void {
    this.#turns = []
  }

  /** A conversation that goes on from here on its own. */
  fork(): Chat {
    const turns = this.#turns.filter(turn => turn.answer)
    const chat = new Chat(this.#start, this.#before)
    chat.#turns = turns
    return chat
  }

  async #answer(turn: Turn, run: Run, onToken: (token: Token) => void, stop: AbortSignal) {
    let content = ''
    try {
      return await run(token => {
        // What comes after the stop was seen by no one.
        if (!stop.aborted) content += token.text
        onToken(token)
      }, stop)
    } catch (error) {
      content = ''
      throw error
    } finally {
      if (content) turn.answer = { role: 'assistant', content }
      else this.#turns = this.#turns.filter(other => other !== turn)
    }
  }

  /** The conversation up to a turn's question; a turn before it that has no answer has failed. */
  #until(turn: Turn): Message[] {
    const earlier = this.#turns.slice(0, Math.max(0, this.#turns.indexOf(turn)))
    return [...this.#before, ...earlier.flatMap(({ user, answer }) => (answer ? [user, answer] : [])), turn.user]
  }
}
