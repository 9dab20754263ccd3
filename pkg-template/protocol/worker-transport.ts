// A model in a worker, from the page's side.
import { BitNetError } from '../error.js'
import { whenFree } from '../threads/life.js'
import { fromFailure, internalError, VERSION } from './messages.js'
import type {
  Reply, Call, FromWorker, Item, Method, Methods, ModelMethod, PortableSource, Result, Streaming,
  ToWorker, Transport
} from './messages.js'
import { postable } from './source.js'
import { NOT_LOADED, spawn } from '../threads/spawn.js'
import type { DeviceLoss, ModelInfo, Progress } from '../types.js'

/** Milliseconds to wait for a worker's first answer. A worker that stays silent is not ours. */
const PATIENCE = 60_000

/** A call in flight. It takes its answers, or ends without one. */
interface InFlight {
  receive: (answer: Reply) => void
  reject: (why: BitNetError) => void
}

/** Ids are unique in the page, because two transports may share one worker of the caller. */
let lastId = 0

export class WorkerTransport implements Transport {
  onStoring: ((progress: Progress) => void) | undefined
  onEnd: ((why: BitNetError) => void) | undefined
  onLost: ((loss: DeviceLoss) => void) | undefined
  #worker: Worker
  /** Whether we made the worker. If so, it ends with the model. */
  #own: boolean
  #inFlight = new Map<number, InFlight>()
  /** The call that loads this transport's model. */
  #loadId: number | undefined
  /** The reason why calls are not answered any more. */
  #closed: BitNetError | undefined
  #listening = new AbortController()
  /** Whether the worker has answered. Ours do. */
  #greeted = false

  /** Makes `worker`, or a worker of our own, ready to load a model. */
  static async open(worker?: Worker): Promise<WorkerTransport> {
    const transport = new WorkerTransport(worker ?? start(), worker === undefined)
    try {
      await transport.#greet()
      return transport
    } catch (error) {
      transport.close(error instanceof BitNetError ? error : internalError(error))
      throw error
    }
  }

  private constructor(worker: Worker, own: boolean) {
    this.#worker = worker
    this.#own = own
    const { signal } = this.#listening
    const onMessage = ({ data }: MessageEvent<FromWorker>) => this.#receive(data)
    // A caller's worker may have a script of its own, and then its errors and messages are the
    // caller's. But an error before its first answer means that it will never answer.
    const onError = (event: ErrorEvent) => {
      if (own || !this.#greeted) this.#end(failed(event))
    }
    const onUnreadable = () => {
      if (own) this.#end(internalError('a message from the worker could not be read'))
    }
    worker.addEventListener('message', onMessage, { signal })
    worker.addEventListener('error', onError, { signal })
    worker.addEventListener('messageerror', onUnreadable, { signal })
  }

  async load(
    source: PortableSource, options: Methods['load']['args'][1], streaming: Streaming<'load'>
  ): Promise<ModelInfo> {
    const posted = await postable(source, streaming.signal)
    const transfer = posted instanceof ReadableStream ? [posted] : []
    return this.#send('load', [posted, options], streaming, transfer)
  }

  call<M extends ModelMethod>(
    method: M, args: Methods[M]['args'], streaming: Streaming<M> = {}
  ): Promise<Methods[M]['result']> {
    return this.#send(method, args, streaming)
  }

  close(why: BitNetError): void {
    if (!this.#own && !this.#closed && this.#loadId !== undefined) {
      this.#postCall('dispose', ++lastId, [this.#loadId])
    }
    this.#end(why)
  }

  async #send<M extends Method>(
    method: M, args: Methods[M]['args'], { onItem, signal }: Streaming<M> = {},
    transfer: Transferable[] = []
  ): Promise<Methods[M]['result']> {
    if (this.#closed) throw this.#closed
    const id = ++lastId
    if (method === 'load') this.#loadId = id
    const cancel = () => this.#post({ kind: 'cancel', id })
    try {
      return await new Promise((resolve, reject) => {
        const receive = (answer: Reply) => {
          if (answer.kind === 'error') reject(fromFailure(answer.error))
          else if (isItemOf(answer, method)) onItem?.(answer.item)
          else if (isResultOf(answer, method)) resolve(answer.result)
        }
        this.#inFlight.set(id, { receive, reject })
        this.#postCall(method, id, args, signal?.aborted, transfer)
        signal?.addEventListener('abort', cancel)
      })
    } catch (error) {
      throw named(error)
    } finally {
      signal?.removeEventListener('abort', cancel)
      this.#inFlight.delete(id)
    }
  }

  #postCall<M extends Method>(
    method: M, id: number, args: Methods[M]['args'], aborted = false,
    transfer: Transferable[] = []
  ): void {
    const call: Call<M> = { kind: 'call', id, method, args, aborted }
    this.#post(call, transfer)
  }

  #post<M extends Method>(message: ToWorker<M>, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #receive(message: FromWorker): void {
    // A caller's worker may also post other messages, which are not for us.
    switch (message?.kind) {
      case 'fatal':
        if (this.#own || message.isOurs) this.#end(fromFailure(message.error))
        return
      case 'storing':
        if (message.id === this.#loadId) this.onStoring?.(message.progress)
        return
      case 'lost':
        if (message.id === this.#loadId) this.onLost?.(message.loss)
        return
      case 'item':
      case 'result':
      case 'error':
        return this.#inFlight.get(message.id)?.receive(message)
    }
  }

  async #greet(): Promise<void> {
    const silent = 'bad option `worker`: it does not answer; make it from `tritloom/worker`'
    const giveUp = () => this.#end(new BitNetError('bad-option', silent))
    const patience = setTimeout(giveUp, PATIENCE)
    try {
      const { version, lock } = await this.#send('hello', [])
      this.#greeted = true
      if (version !== VERSION) {
        throw internalError(
          `the worker speaks version ${version}, the page version ${VERSION}: ` +
          'their files are of different releases'
        )
      }
      if (lock) this.#watch(lock)
    } finally {
      clearTimeout(patience)
    }
  }

  /** Notices when the worker ends, because its lock is free then. */
  #watch(lock: string): void {
    whenFree(lock, this.#listening.signal, () => this.#end(internalError('the worker has ended')))
  }

  #end(why: BitNetError): void {
    if (this.#closed) return
    this.#closed = why
    this.#listening.abort()
    // One that has failed would keep the GPU's memory and the model's locks.
    if (this.#own) this.#worker.terminate()
    for (const { reject } of this.#inFlight.values()) reject(why)
    this.onEnd?.(why)
  }
}

const isItemOf = <M extends Method>(answer: Reply | Item<M>, method: M): answer is Item<M> =>
  answer.kind === 'item' && answer.method === method

const isResultOf = <M extends Method>(answer: Reply | Result<M>, method: M): answer is Result<M> =>
  answer.kind === 'result' && answer.method === method

/** Makes a worker of our own. Bundlers recognise `new Worker(new URL(…))` only in this form. */
function start(): Worker {
  try {
    return spawn(
      new URL('./worker.js', import.meta.url),
      () => new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
    )
  } catch (error) {
    // The page's policy forbids workers, or a worker from this address.
    throw notLoaded(`: ${error instanceof Error ? error.message : error}`, { cause: error })
  }
}

/** A copy. Throws `bad-option` for what cannot be copied, nor posted. */
export function copied<T>(value: T): T {
  try {
    return structuredClone(value)
  } catch (error) {
    throw named(error)
  }
}

/** If the options hold something that cannot be posted, most likely a function, the error that says so. */
const named = (error: unknown): unknown =>
  error instanceof DOMException && error.name === 'DataCloneError'
    ? new BitNetError('bad-option', `bad option: ${error.message}`, { cause: error })
    : error

/**
 * The error of a script that failed. A script that throws gives an event with a message. A script
 * that was not loaded gives none, or our own message.
 */
function failed({ message }: ErrorEvent): BitNetError {
  const isLoaded = message && !message.includes(NOT_LOADED)
  return isLoaded ? internalError(`the worker failed: ${message}`) : notLoaded()
}

function notLoaded(why = '', options?: { cause: unknown }): BitNetError {
  const said = `the worker's script could not be loaded${why}; \`worker: false\` does without it`
  return new BitNetError('network', said, options)
}
