// Threads of `node:worker_threads` in the form of a browser's workers.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker as Thread } from 'node:worker_threads'
import type { FromWorker, ToWorker } from '../protocol/messages.js'
import { DAWN, END } from './gpu.js'
import { releaseAll } from './locks.js'
import type { Progress } from '../types.js'

/** The first script of each thread. Bundlers would copy `new URL(…, import.meta.url)` without its imports. */
const SCRIPT = join(dirname(fileURLToPath(import.meta.url)), 'thread-script.js')

/** Milliseconds after which a thread is ended that does not end by itself. */
const PATIENCE = 5_000

/** The threads that use Dawn. They must have ended before the program does. */
const dawns = new Set<NodeWorker>()
let isWatching = false

/** Ends a thread before the program ends. */
function endBeforeProgram(thread: NodeWorker): void {
  dawns.add(thread)
  if (isWatching) return
  isWatching = true
  process.on('beforeExit', () => { for (const thread of dawns) thread.terminate() })
}

/** A browser's `Worker`, as far as the package uses it. */
class NodeWorker extends EventTarget {
  onmessage: ((event: MessageEvent) => void) | null = null
  onerror: ((event: ErrorEvent) => void) | null = null
  #thread: Thread
  #isEnding = false
  /** The work of the thread before whose end the program goes on. */
  #due = new Set<number | string>()

  constructor(url: URL) {
    super()
    // The options of the program's own script, such as `--input-type`, would be those of this one.
    this.#thread = new Thread(SCRIPT, { workerData: { script: url.href }, execArgv: [] })
    const id = this.#thread.threadId
    this.#thread.on('message', data => {
      if (data === DAWN) return endBeforeProgram(this)
      this.#answered(data)
      this.#tell(new MessageEvent('message', { data }))
    })
    this.#thread.on('messageerror', () => this.#tell(new MessageEvent('messageerror')))
    this.#thread.on('error', error => this.#fail(error instanceof Error ? error.message : String(error)))
    this.#thread.on('exit', () => {
      dawns.delete(this)
      releaseAll(id)
      this.#fail('it has ended')
    })
    // A program ends although a model is loaded, as a page does, but not while a call runs.
    this.#thread.unref()
  }

  postMessage(message: unknown, transfer: Transferable[] = []): void {
    const { kind, id } = (message ?? {}) as Partial<ToWorker>
    if (kind === 'call') this.#await(id!)
    this.#thread.postMessage(message, transfer as never)
  }

  terminate(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    // It may just begin to use Dawn, and Deno may crash too if a thread is ended that has just looked for a GPU. So it is
    // asked to end by itself. Until then the program goes on.
    this.#thread.ref()
    this.#thread.postMessage(END)
    setTimeout(() => { void this.#thread.terminate() }, PATIENCE).unref()
  }

  #await(due: number | string): void {
    this.#due.add(due)
    this.#thread.ref()
  }

  /** Notes what the thread has done. Messages of other scripts have other fields. */
  #answered(message: Partial<FromWorker>): void {
    if (message?.kind === 'result' || message?.kind === 'error') this.#due.delete(message.id!)
    const progress = progressOf(message)
    if (progress?.phase === 'storing') this.#await('storing')
    else if (progress) this.#due.delete('storing')
    if (this.#due.size === 0 && !this.#isEnding) this.#thread.unref()
  }

  #fail(message: string): void {
    const event = Object.assign(new Event('error', { cancelable: true }), { message })
    this.#tell(event as ErrorEvent)
  }

  #tell(event: MessageEvent | ErrorEvent): void {
    this.dispatchEvent(event)
    if (event.type === 'message') this.onmessage?.(event as MessageEvent)
    if (event.type === 'error') this.onerror?.(event as ErrorEvent)
  }
}

/** The progress of a load that a message tells. */
function progressOf(message: Partial<FromWorker>): Progress | undefined {
  if (message?.kind === 'storing') return message.progress
  return message?.kind === 'item' && message.method === 'load' ? message.item : undefined
}

export const thread = (url: URL): Worker => new NodeWorker(url) as unknown as Worker
