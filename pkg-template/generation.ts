import { fetched } from './error.js'
import type { Stats, Token, ToolCall } from './types.js'

const values = () => fetched(() => import('./values.js'))

/** A run of the model. It passes tokens on as they come, and ends early when the signal aborts. */
export type Start = (onToken: (token: Token) => void, signal: AbortSignal) => Promise<Stats>

/**
 * An answer that is being generated. Read it text by text with `for await`, token by token with
 * `tokens()`, as a stream, or as a whole with `text()`.
 *
 * The model runs only once, however often the answer is read. Each reader gets everything from the
 * start. Leaving a `for await` loop stops the model. If the caller's signal aborts, readers reject
 * with its reason.
 */
export class Generation implements AsyncIterable<string> {
  /** The statistics. Resolves when the model has stopped for any reason; rejects if it failed. */
  readonly stats: Promise<Stats>
  #tokens: Token[] = []
  #ended = false
  #failed: { why: unknown } | undefined
  #stop = new AbortController()
  #begun: () => string
  /** Wakes the waiting readers. */
  #waiting: (() => void)[] = []

  /**
   * `begun` is the text with which the answer begins, and which is not generated. Called when the first
   * token has come or the answer has ended.
   * @internal
   */
  constructor(run: Start, signal?: AbortSignal, begun = () => '') {
    this.#begun = begun
    const abort = () => {
      this.#end({ why: signal?.reason })
      this.#stop.abort()
    }
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
    this.stats = run(token => this.#add(token), this.#stop.signal)
    this.stats
      .then(() => this.#end(), why => this.#end({ why }))
      .finally(() => signal?.removeEventListener('abort', abort))
  }

  /** The whole answer, once it has ended. */
  text(): Promise<string> {
    return this.#whole('answer')
  }

  /** The whole reasoning before the answer, once the answer has ended. Empty if there is none. */
  reasoning(): Promise<string> {
    return this.#whole('reasoning')
  }

  /**
   * The whole answer, with its `prefix`, read as JSON, once it has ended. Ask for JSON with the option
   * `responseFormat`. Rejects with `incomplete` if `maxTokens`, a `stop` text or a reader that left has
   * cut it off, if it has ended with calls of tools, and if it is no JSON.
   */
  async json<T = unknown>(): Promise<T> {
    const [text, stats] = [await this.text(), await this.stats]
    return (await values()).jsonOf<T>(this.#begun() + text, stats)
  }

  /**
   * The JSON value as it grows, each time anew: strings, arrays and objects that have begun are
   * there as far as they are known, numbers and keys once they are whole. The last one is the whole
   * value, unless the answer is cut off. A `prefix` counts. A text that is no JSON gives none.
   */
  async *partials<T = unknown>(): AsyncGenerator<T, void, undefined> {
    const { partials } = await fetched(() => import('./partial.js'))
    yield* partials<T>(this, this.#begun)
  }

  /**
   * The calls of tools, once the answer has ended; none if the model has called none. Rejects with
   * `incomplete` if one is cut off. `tokens()` gives their parts as they come.
   */
  async toolCalls(): Promise<ToolCall[]> {
    return (await values()).callsOf(this.#read())
  }

  /** The tokens of the reasoning and of the answer as they come. */
  async *tokens(): AsyncGenerator<Token, void, undefined> {
    try {
      yield* this.#read()
    } finally {
      this.#leave()
    }
  }

  /** The answer as a stream. Cancelling the stream stops the model. */
  stream(): ReadableStream<string> {
    const texts = this[Symbol.asyncIterator]()
    return new ReadableStream({
      pull: async controller => {
        const { done, value } = await texts.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: () => this.#leave()
    })
  }

  /** The answer as it comes, in whole characters and never empty. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    try {
      for await (const { text, channel } of this.#read()) {
        if (text && channel === 'answer') yield text
      }
    } finally {
      this.#leave()
    }
  }

  async #whole(channel: Token['channel']): Promise<string> {
    let text = ''
    for await (const token of this.#read()) if (token.channel === channel) text += token.text
    return text
  }

  async *#read(): AsyncGenerator<Token, void, undefined> {
    for (let next = 0; ; next++) {
      while (next >= this.#tokens.length && !this.#ended) {
        await new Promise<void>(resolve => this.#waiting.push(resolve))
      }
      if (this.#failed) throw this.#failed.why
      const token = this.#tokens[next]
      if (!token) return
      yield token
    }
  }

  #add(token: Token): void {
    if (this.#ended) return
    this.#tokens.push(token)
    this.#wake()
  }

  #end(failed?: { why: unknown }): void {
    if (this.#ended) return
    this.#ended = true
    this.#failed = failed
    this.#wake()
  }

  /** Stops the model, because a reader has left. */
  #leave(): void {
    if (this.#ended) return
    this.#end()
    this.#stop.abort()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
