// One answer, as it comes.
import type { Stats, Token } from './types.js'

/** Starts the run: hands over tokens as they come, ends early when the signal aborts. */
export type Run = (onToken: (token: Token) => void, signal: AbortSignal) => Promise<Stats>

/**
 * An answer: text by text in a `for await` loop, or as a whole with `text()`.
 *
 * There is one run, however often it is read, and each reader gets all of it. Leaving a loop ends
 * the run; an abort of the caller's signal also rejects its readers, with the signal's reason.
 */
export class Generation implements AsyncIterable<string> {
  /** Resolves when the run has ended, also when it was stopped; rejects if it failed. */
  readonly stats: Promise<Stats>
  #tokens: Token[] = []
  #ended = false
  #failed: { why: unknown } | undefined
  #stop = new AbortController()
  /** Readers that wait for more. */
  #waiting: (() => void)[] = []

  /** @internal */
  constructor(run: Run, signal?: AbortSignal) {
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

  /** All of the text. */
  async text(): Promise<string> {
    let text = ''
    for await (const token of this.#read()) text += token.text
    return text
  }

  /** The tokens one by one. */
  async *tokens(): AsyncGenerator<Token, void, undefined> {
    try {
      yield* this.#read()
    } finally {
      this.#leave()
    }
  }

  /** The text as a stream; cancelling it ends the run. */
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

  /** The text as it comes, never less than a character. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    try {
      for await (const { text } of this.#read()) if (text) yield text
    } finally {
      this.#leave()
    }
  }

  async *#read(): AsyncGenerator<Token, void, undefined> {
    for (let next = 0; ; next++) {
      while (next >= this.#tokens.length && !this.#ended) await new Promise<void>(resolve => this.#waiting.push(resolve))
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

  /** A reader has gone: nobody is to wait for what it did not want. */
  #leave(): void {
    if (this.#ended) return
    this.#end()
    this.#stop.abort()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
