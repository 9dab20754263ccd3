// The page's end of a worker.
import { BitNetError } from './error.js'
import { fromFailure, VERSION } from './protocol.js'
import type { FromWorker, Hello, Method, Methods, PortableSource, Streaming, ToWorker, Transport } from './protocol.js'
import { postable } from './source.js'
import type { DeviceLoss } from './types.js'

/** Milliseconds until a worker that says nothing is taken for one of somebody else's. */
const PATIENCE = 60_000

interface Call {
  resolve: (value: unknown) => void
  reject: (why: unknown) => void
  onPiece: ((piece: unknown) => void) | undefined
}

/** Ids are the page's, not a transport's: two of them may talk to one worker of the caller's. */
let lastId = 0

export class WorkerTransport implements Transport {
  onLost: ((loss: DeviceLoss) => void) | undefined
  #worker: Worker
  /** Whether the worker ends with the model. */
  #own: boolean
  #calls = new Map<number, Call>()
  /** The call that loads this transport's model. */
  #loadId: number | undefined
  #lost: BitNetError | undefined
  #listening = new AbortController()

  /** A worker of our own, or `worker`, ready to load a model. */
  static async open(worker?: Worker): Promise<WorkerTransport> {
    const transport = new WorkerTransport(worker ?? start(), worker === undefined)
    try {
      await transport.#greet()
      return transport
    } catch (error) {
      transport.close(error as BitNetError)
      throw error
    }
  }

  private constructor(worker: Worker, own: boolean) {
    this.#worker = worker
    this.#own = own
    const { signal } = this.#listening
    worker.addEventListener('message', event => this.#receive((event as MessageEvent<FromWorker>).data), { signal })
    worker.addEventListener('error', event => this.#fail(failed(event as ErrorEvent)), { signal })
    worker.addEventListener('messageerror', () => this.#fail(internal('a message of the worker could not be read')), { signal })
  }

  async call<M extends Method>(method: M, args: Parameters<Methods[M]>, streaming: Streaming = {}): Promise<ReturnType<Methods[M]>> {
    const [first, ...rest] = args
    const posted = method === 'load' ? [await postable(first as PortableSource), ...rest] : args
    return await this.#send(method, posted, streaming) as ReturnType<Methods[M]>
  }

  close(why: BitNetError): void {
    if (this.#own) this.#worker.terminate()
    else if (!this.#lost && this.#loadId !== undefined) this.#post({ id: ++lastId, method: 'dispose', args: [this.#loadId] })
    this.#fail(why)
  }

  async #send(method: Method | 'hello', args: unknown[], { onPiece, signal }: Streaming): Promise<unknown> {
    if (this.#lost) throw this.#lost
    const id = ++lastId
    if (method === 'load') this.#loadId = id
    const cancel = () => this.#post({ id, cancel: true })
    try {
      return await new Promise((resolve, reject) => {
        this.#calls.set(id, { resolve, reject, onPiece })
        this.#post({ id, method, args }, args[0] instanceof ReadableStream ? [args[0]] : [])
        if (signal?.aborted) cancel()
        signal?.addEventListener('abort', cancel)
      })
    } catch (error) {
      // A function among the options, most likely.
      throw isUncloneable(error) ? new BitNetError('bad-option', `bad option: ${error.message}`) : error
    } finally {
      signal?.removeEventListener('abort', cancel)
      this.#calls.delete(id)
    }
  }

  #post(message: ToWorker, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #receive(message: FromWorker): void {
    if ('fatal' in message) return this.#fail(fromFailure(message.fatal))
    if ('lost' in message) {
      if (message.id === this.#loadId) this.onLost?.(message.lost)
      return
    }
    const call = this.#calls.get(message.id)
    if (!call) return
    if ('piece' in message) call.onPiece?.(message.piece)
    else if ('error' in message) call.reject(fromFailure(message.error))
    else call.resolve(message.value)
  }

  async #greet(): Promise<void> {
    const silence = setTimeout(() => this.#fail(new BitNetError('bad-option', 'bad option `worker`: it does not answer; make it from `ternlight/worker`')), PATIENCE)
    try {
      const { version, lock } = await this.#send('hello', [], {}) as Hello
      if (version !== VERSION) throw internal(`the worker speaks version ${version}, the page ${VERSION}: their files are of different releases`)
      if (lock) this.#watch(lock)
    } finally {
      clearTimeout(silence)
    }
  }

  /** The worker's lock is free when the worker has ended, for which there is no event. */
  #watch(lock: string): void {
    navigator.locks.request(lock, { signal: this.#listening.signal }, () => this.#fail(internal('the worker has ended')))
      .catch(() => {}) // The model was let go before the worker.
  }

  #fail(why: BitNetError): void {
    this.#lost ??= why
    this.#listening.abort()
    for (const call of this.#calls.values()) call.reject(this.#lost)
  }
}

/** Our own worker. Bundlers know `new Worker(new URL(…))` in just these words. */
function start(): Worker {
  const url = new URL('./worker.js', import.meta.url)
  if (url.origin === globalThis.location.origin || url.protocol !== 'http:' && url.protocol !== 'https:') {
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
  }
  // A worker must be of the page's origin: one that imports the other origin's script will do.
  const script = URL.createObjectURL(new Blob([`import ${JSON.stringify(url.href)}`], { type: 'text/javascript' }))
  try {
    return new Worker(script, { type: 'module' })
  } finally {
    // The fetch has the blob already.
    setTimeout(() => URL.revokeObjectURL(script), PATIENCE)
  }
}

const isUncloneable = (error: unknown): error is DOMException =>
  error instanceof DOMException && error.name === 'DataCloneError'

/** A script that does not load says nothing; one that throws says what. */
const failed = ({ message }: ErrorEvent): BitNetError =>
  message
    ? internal(`the worker failed: ${message}`)
    : new BitNetError('network', 'the worker\'s script could not be loaded; `worker: false` does without')

const internal = (what: string): BitNetError => new BitNetError('internal', `internal error (please report it): ${what}`)
