// Tells a page how far a load is.
import { Handler, progressEvent } from './events.js'

const TYPE = 'downloadprogress'
/** The number of steps in which a page learns of the progress. */
const STEPS = 0x10000

/**
 * The target of `downloadprogress` events: a `ProgressEvent` with `loaded` from 0 to 1. It counts all
 * that a load does, not the download alone.
 */
export class CreateMonitor extends EventTarget {
  #handler = new Handler(this, TYPE)

  get ondownloadprogress(): ((event: Event) => unknown) | null {
    return this.#handler.value
  }

  set ondownloadprogress(listener: ((event: Event) => unknown) | null) {
    this.#handler.value = listener
  }
}

/** The option `monitor` of the drafts. */
export type CreateMonitorCallback = (monitor: CreateMonitor) => unknown

/** Reports to the page's callback, if it has one, until `signal` aborts. */
export class Reporter {
  #monitor: CreateMonitor | undefined
  #signal: AbortSignal | undefined
  #last = -1

  /** Calls the page back, and throws what it throws. */
  constructor(callback: CreateMonitorCallback | undefined, signal: AbortSignal | undefined) {
    this.#signal = signal
    if (!callback) return
    this.#monitor = new CreateMonitor()
    callback(this.#monitor)
  }

  /** Reports a share, unless it has been reached before. */
  report = (share: number): void => {
    const loaded = Math.floor(share * STEPS) / STEPS
    if (loaded <= this.#last || this.#signal?.aborted) return
    this.#last = loaded
    this.#monitor?.dispatchEvent(progressEvent(TYPE, loaded))
  }
}
