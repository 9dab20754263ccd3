// Files of stored bytes in the browser's own file system (OPFS), for the crate. Slow work is done
// in workers: see disk-worker.ts. A file has the name of its record in IndexedDB.
import { platform } from '../platform.js'
import type { DiskAnswer, Stored } from '../platform.js'
import { whenFree } from './life.js'
import { spawn } from './spawn.js'

const FOLDER = 'tritloom'
/** The names of files that end with their threads begin so: see scratch.ts. */
export const SCRATCH = 'scratch-'
/**
 * The number of threads that read. Hashing takes most of their time. The first one also writes the
 * bytes that the others have hashed. More threads would take memory, and the load could not use
 * their bytes in time.
 */
const THREADS = Math.min(3, Math.max(2, (globalThis.navigator?.hardwareConcurrency ?? 0) >> 2))
/** Milliseconds to wait for a thread to start. */
const PATIENCE = 10_000

/** A question to a thread. If it has an array, the array comes back with the answer. */
export type DiskTask = { id: number } & (
  | { kind: 'hello' }
  | { kind: 'read' | 'write', name: string, start: number, length: number, array: ArrayBuffer }
  | { kind: 'hash', length: number, array: ArrayBuffer }
  | { kind: 'flush' | 'close', name: string }
)

/** The answer of a thread. The one to `hello` names a lock, which the thread holds as long as it lives. */
export interface DiskReply extends DiskAnswer {
  id: number
  lock?: string | undefined
}

type Unnumbered<T> = T extends unknown ? Omit<T, 'id'> : never
type InFlight = (answer: DiskReply) => void

/** One thread, and its unanswered questions. */
class Thread {
  #worker: Worker
  #inFlight = new Map<number, InFlight>()
  #lastId = 0
  /** The reason why it answers no more questions. */
  #ended: string | undefined
  #watching = new AbortController()

  constructor() {
    this.#worker = spawn(
      new URL('./disk-worker.js', import.meta.url),
      () => new Worker(new URL('./disk-worker.js', import.meta.url), { type: 'module' })
    )
    this.#worker.onmessage = ({ data }: MessageEvent<DiskReply>) => {
      this.#inFlight.get(data.id)?.(data)
      this.#inFlight.delete(data.id)
    }
    this.#worker.onerror = event => {
      // The load goes on without threads, so this is no error of the thread that loads.
      event.preventDefault()
      this.end('its thread does not run')
    }
  }

  /** The number of unanswered questions. */
  get waiting(): number {
    return this.#inFlight.size
  }

  ask(question: Unnumbered<DiskTask>): Promise<DiskReply> {
    const id = ++this.#lastId
    if (this.#ended !== undefined) return Promise.resolve({ id, failed: this.#ended })
    return new Promise(resolve => {
      this.#inFlight.set(id, resolve)
      this.#worker.postMessage({ id, ...question }, 'array' in question ? [question.array] : [])
    })
  }

  /** Resolves to whether the thread works. */
  async runs(): Promise<boolean> {
    const patience = setTimeout(() => this.end('its thread does not start'), PATIENCE)
    const { failed, lock } = await this.ask({ kind: 'hello' })
    clearTimeout(patience)
    if (lock) whenFree(lock, this.#watching.signal, () => this.end('its thread has ended'))
    return failed === undefined
  }

  end(failed: string): void {
    this.#ended ??= failed
    this.#watching.abort()
    this.#worker.terminate()
    for (const [id, receive] of this.#inFlight) receive({ id, failed })
    this.#inFlight.clear()
  }
}

/** The folder of all files. */
export const folder = async (create = false): Promise<FileSystemDirectoryHandle> =>
  (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create })

/** Deletes scratch files whose threads have ended. One that is open stays, because its handle shuts others out. */
export async function sweep(): Promise<void> {
  const all = await folder()
  // The standard types do not have this yet.
  for await (const name of (all as unknown as { keys(): AsyncIterable<string> }).keys()) {
    if (name.startsWith(SCRATCH)) await all.removeEntry(name).catch(() => {})
  }
}

/** A file as it is. */
export const fileNamed = async (name: string): Promise<File> =>
  (await (await folder()).getFileHandle(name)).getFile()

export class Disk implements Stored {
  /** The working threads. `undefined` until they are needed. */
  #threads: Promise<Thread[]> | undefined
  /** The files that the first thread writes. The other threads leave them alone. */
  #written = new Set<string>()

  /** `undefined` in a browser without such files. */
  static async open(): Promise<Stored | undefined> {
    if (platform.disk) return platform.disk.open()
    try {
      await navigator.storage.getDirectory()
      void sweep().catch(() => {})
      return new Disk()
    } catch {
      return undefined
    }
  }

  /** Locks that all threads share which use the same files; `undefined` in a frame without storage. */
  static locks(): LockManager | undefined {
    return platform.disk ? platform.disk.locks : globalThis.navigator?.locks
  }

  /** Bytes that can still be stored; no number if that is not known. */
  static async free(): Promise<number> {
    if (platform.disk) return platform.disk.free()
    const { quota, usage } = await navigator.storage?.estimate?.().catch(() => {}) ?? {}
    return quota! - usage!
  }

  /** Whether files can be written. */
  async canWrite(): Promise<boolean> {
    return (await this.#running()).length > 0
  }

  /** The size of every file, by name. */
  async sizes(): Promise<Map<string, number>> {
    const sizes = new Map<string, number>()
    // The standard types do not have this yet.
    const entries = await folder(true) as unknown as AsyncIterable<[string, FileSystemFileHandle]>
    for await (const [name, handle] of entries) {
      // Another tab may delete a file meanwhile.
      const file = await handle.getFile().catch(() => undefined)
      if (file) sizes.set(name, file.size)
    }
    return sizes
  }

  /** Reads at most `length` bytes into `array`, as many as there are, and hashes them. */
  async read(name: string, start: number, length: number, array: ArrayBuffer): Promise<DiskReply> {
    const threads = await this.#running()
    const thread = this.#written.has(name) ? threads[0] : idlest(threads)
    const answer = await thread?.ask({ kind: 'read', name, start, length, array })
    if (answer && answer.failed === undefined) return answer
    // The thread was killed or cannot read, or the page's policy allows no workers.
    if (array.byteLength === 0) array = answer?.array ?? new ArrayBuffer(length)
    try {
      const bytes = await (await fileNamed(name)).slice(start, start + length).arrayBuffer()
      new Uint8Array(array).set(new Uint8Array(bytes))
      const sha256 = await crypto.subtle.digest('SHA-256', bytes)
      return { id: 0, array, length: bytes.byteLength, sha256 }
    } catch (error) {
      return { id: 0, array, failed: String(error) }
    }
  }

  /** Writes bytes, and hashes them. They are safe after `flush`. */
  async write(name: string, start: number, length: number, array: ArrayBuffer): Promise<DiskReply> {
    const [first, ...others] = await this.#running()
    if (!first) return { id: 0, array, failed: 'no thread runs' }
    if (!this.#written.has(name)) {
      this.#written.add(name)
      await Promise.all(others.map(thread => thread.ask({ kind: 'close', name })))
    }
    const hashed = await idlest(others)!.ask({ kind: 'hash', length, array })
    if (hashed.failed !== undefined || !hashed.array) return hashed
    // Writing would create the deleted file again.
    if (!this.#written.has(name)) return { ...hashed, failed: 'the file was deleted' }
    const written = await first.ask({ kind: 'write', name, start, length, array: hashed.array })
    return { ...hashed, ...written }
  }

  async flush(name: string): Promise<DiskReply> {
    const [first] = await this.#running()
    return first?.ask({ kind: 'flush', name }) ?? { id: 0, failed: 'no thread runs' }
  }

  /** Deletes a file. A file that another tab has open stays. */
  async remove(name: string): Promise<void> {
    this.#written.delete(name)
    const threads = await this.#threads ?? []
    await Promise.all(threads.map(thread => thread.ask({ kind: 'close', name })))
    // This fails if there is no such file.
    await (await folder(true)).removeEntry(name).catch(() => {})
  }

  /** Ends the threads. Their unanswered questions fail. */
  end(): void {
    void this.#threads?.then(threads => { for (const thread of threads) thread.end('it has ended') })
  }

  #running(): Promise<Thread[]> {
    this.#threads ??= start()
    return this.#threads
  }
}

/** Starts the threads: all of them, or none. */
async function start(): Promise<Thread[]> {
  const threads: Thread[] = []
  try {
    for (let n = 0; n < THREADS; n++) threads.push(new Thread())
    const run = await Promise.all(threads.map(thread => thread.runs()))
    if (run.every(Boolean)) return threads
  } catch {
    // The page's policy forbids workers, or this is a browser whose workers have no workers of
    // their own.
  }
  for (const thread of threads) thread.end('it does not run')
  return []
}

/** The thread with the fewest unanswered questions. */
const idlest = (threads: Thread[]): Thread | undefined =>
  threads.toSorted((a, b) => a.waiting - b.waiting)[0]
