// Requests that other threads make, for the crate: see fetch-worker.ts.
import { spawn } from './spawn.js'

/** The fewest processors for these threads. A machine with fewer has none to spare. */
const PROCESSORS = 4

/** A request. Its port takes orders and brings reports. */
export interface Asked {
  url: string
  headers: [string, string][]
  /** The most milliseconds for each order. */
  patience: number
  port: MessagePort
}

/**
 * An order to fill the array with the next `length` bytes of the response. `null` aborts the
 * request.
 */
export type Order = { array: ArrayBuffer, length: number } | null

/** The head of the response, and then an answer to each order. `failed` if there is no response. */
export type Report = { head: Head } | Filled | 'failed'

/** The part of a response that the crate reads. */
interface Head {
  status: number
  type: ResponseType
  headers: [string, string][]
}

/**
 * An array that came back. It has `length` bytes. They are fewer than ordered if the response broke
 * off or is slow.
 */
export interface Filled {
  array: ArrayBuffer
  length: number
}

export class FetchThreads {
  #all: Worker[] = []
  #running: Worker[] = []
  /** The number of requests so far. By this the threads take turns. */
  #requests = 0

  /** Whether this machine has enough processors for these threads. */
  static help(): boolean {
    return globalThis.navigator?.hardwareConcurrency >= PROCESSORS
  }

  /** Starts `threads` workers. */
  constructor(threads: number) {
    try {
      for (let n = 0; n < threads; n++) this.#start()
    } catch {
      // The page's policy forbids workers, or this is a browser whose workers have no workers of
      // their own.
    }
  }

  #start(): void {
    const thread = spawn(
      new URL('./fetch-worker.js', import.meta.url),
      () => new Worker(new URL('./fetch-worker.js', import.meta.url), { type: 'module' })
    )
    this.#all.push(thread)
    thread.onmessage = () => this.#running.push(thread)
    // If a thread's script was not loaded, a load does without that thread.
    thread.onerror = event => event.preventDefault()
  }

  /** Whether one of the threads runs by now. */
  get running(): boolean {
    return this.#running.length > 0
  }

  /** Asks for `url` without the HTTP cache. Aborting `signal` ends all waits. */
  ask(url: string, headers: Headers, patience: number, signal: AbortSignal): ThreadRequest {
    const { port1, port2 } = new MessageChannel()
    const asked: Asked = { url, headers: [...headers], patience, port: port2 }
    this.#running[this.#requests++ % this.#running.length]!.postMessage(asked, [port2])
    return new ThreadRequest(port1, signal)
  }

  end(): void {
    for (const thread of this.#all) thread.terminate()
  }
}

/** A request in another thread. */
export class ThreadRequest {
  /** Resolves to the part of a `Response` that the crate reads. Rejects if there is no response. */
  readonly response: Promise<object>
  #port: MessagePort
  /** The callers that wait for their arrays. */
  #waiting: ((filled: Filled | undefined) => void)[] = []
  #ended = false

  constructor(port: MessagePort, signal: AbortSignal) {
    this.#port = port
    this.response = new Promise((resolve, reject) => {
      const end = () => {
        this.#ended = true
        reject()
        for (const receive of this.#waiting.splice(0)) receive(undefined)
      }
      port.onmessage = ({ data }: MessageEvent<Report>) => {
        if (data === 'failed') end()
        else if ('head' in data) resolve({ ...data.head, headers: new Headers(data.head.headers) })
        else this.#waiting.shift()?.(data)
      }
      signal.addEventListener('abort', () => {
        port.postMessage(null)
        port.close()
        end()
      })
    })
  }

  /**
   * Fills `array` with the next `length` bytes of the response, or with fewer if it breaks off. If
   * the thread has lost the array, another one comes back.
   */
  async fill(array: ArrayBuffer, length: number): Promise<Filled> {
    if (this.#ended) return { array, length: 0 }
    const size = array.byteLength
    const filled = new Promise<Filled | undefined>(resolve => this.#waiting.push(resolve))
    this.#port.postMessage({ array, length }, [array])
    return await filled ?? { array: new ArrayBuffer(size), length: 0 }
  }
}
