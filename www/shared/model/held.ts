// The model of a page. This file knows nothing of the page.
import { BitNet, BitNetError } from 'tritloom'
import type { LoadOptions, ModelInfo } from 'tritloom'

/** The back end that the link to the page names: `?backend=cpu`. A wrong name is an error of the load. */
function backendOfLink(): LoadOptions {
  const backend = new URLSearchParams(location.search).get('backend') as LoadOptions['backend']
  return backend ? { backend } : {}
}

/** One model at a time, and one answer of it at a time. */
export class HeldModel {
  #model: BitNet | null = null
  #isLost = false
  /** How many calls run, whose errors would tell of a loss. */
  #calls = 0
  #answering = new AbortController()
  #onLost: () => void

  /** `onLost` is called when the GPU is lost and no call runs, whose error would say so. */
  constructor(onLost: () => void) {
    this.#onLost = onLost
  }

  /** Replaces the model. The old one is freed first, because the GPU may not have room for both. */
  async load(source: string | File, options: LoadOptions): Promise<void> {
    this.stop()
    await this.#model?.dispose()
    this.#model = null
    const model = await BitNet.load(source, { ...backendOfLink(), ...options })
    if (options.signal?.aborted) {
      await model.dispose() // The abort came too late for `load` to notice.
      throw options.signal.reason
    }
    this.#model = model
    this.#isLost = false
    void this.#watch(model)
  }

  /** The model. Throws if none is loaded. */
  get model(): BitNet {
    if (!this.#model) throw new Error('No model is loaded')
    return this.#model
  }

  get info(): ModelInfo {
    return this.model.info
  }

  /** Whether the GPU was lost since the last call that went well. The next call restores the model. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** The signal for a new answer, which `stop()` aborts. */
  begin(): AbortSignal {
    this.#answering = new AbortController()
    return this.#answering.signal
  }

  /** Stops the answer that is being generated, if there is one. */
  stop() {
    this.#answering.abort()
  }

  /** Passes on what an answer gives, and ends without an error when the answer is stopped. */
  async *untilStopped<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T, void, undefined> {
    this.#calls += 1
    try {
      for await (const item of items) {
        this.#isLost = false
        yield item
      }
    } catch (error) {
      this.#notice(error)
      if (!signal.aborted) throw error
    } finally {
      this.#calls -= 1
    }
  }

  /** Makes a call that is no answer, such as an inspection, and gives its result. If the GPU is lost meanwhile, its error says so. */
  async use<T>(call: (model: BitNet) => Promise<T>): Promise<T> {
    this.#calls += 1
    try {
      const found = await call(this.model)
      this.#isLost = false
      return found
    } catch (error) {
      this.#notice(error)
      throw error
    } finally {
      this.#calls -= 1
    }
  }

  /** Remembers that the GPU is lost, if a call failed for that reason. */
  #notice(error: unknown) {
    if (error instanceof BitNetError && error.code === 'device-lost') this.#isLost = true
  }

  /** Watches for losses while the model is in use. After `dispose()` there are none. */
  async #watch(model: BitNet) {
    for (;;) {
      await model.lost
      if (model !== this.#model) return
      const isKnown = this.#isLost || this.#calls > 0
      this.#isLost = true
      if (!isKnown) this.#onLost()
    }
  }
}
