// Threads that compute together, in one memory. Only pages that are isolated from other origins can share memory.
import { watch } from '../crate/wasm.js'
import { platform } from '../platform.js'
import { spawn } from '../threads/spawn.js'
import { THREADED } from './threaded.js'

/** The parts of a module's script that a thread calls. */
export interface Threaded {
  provide(modules: Record<string, object>): void
  initSync(from: { module: WebAssembly.Module, memory: WebAssembly.Memory, thread_stack_size: number }): Ended
  /** Whether this thread computes rightly. */
  isRightHere(): boolean
  /**
   * Computes for the model at `address`. Gives false when that is gone, and true if there was nothing to do for a
   * while. When there is, the number at `address` changes.
   */
  work(address: number): boolean
  /** To be called after `work` has trapped. */
  failed(address: number): void
}

interface Ended {
  /** Frees the thread's stack. Nothing of the module can be called after that. */
  __wbindgen_thread_destroy(): void
}

/** A thread says so when it runs, and when it ends. */
export interface Said {
  runs: boolean
  /** The reason why it does not run, for people. */
  why?: string
}

/** The first message to a thread: all that it needs to start. */
export interface Start {
  script: string
  module: WebAssembly.Module
  memory: WebAssembly.Memory
  address: number
}

/** Milliseconds to wait for the threads of a load. Those that come later help too. */
const PATIENCE = 10_000

/** The most threads by default. More gain little, because they wait for the memory, and they are the visitor's. */
const MAX_BY_DEFAULT = 8

/** The number of processors to assume if a browser does not tell it. */
const PROCESSORS = 8

/**
 * The most threads for each processor. Threads that wait for one another have to run at the same time. It is more than
 * one, because some browsers tell of fewer processors than there are.
 */
const MAX_PER_PROCESSOR = 2

/** The largest sizes to ask for, in pages of 64 KiB. A phone may refuse the first ones, because a size reserves addresses. */
const SIZES = [65536, 32768, 16384]

/** Pages at the beginning, at least as many as the modules ask for. */
const FIRST = 128

/** The number of threads that compute if a load does not say it. */
export const defaultThreads = (): number =>
  platform.threads ?? Math.max(1, Math.min(globalThis.navigator?.hardwareConcurrency ?? 1, MAX_BY_DEFAULT))

/** The number of threads that would compute in a worker of this page, if a load does not say it. */
export const threadsInWorker = (): number =>
  Object.keys(THREADED).length > 0 && obstacleInWorker() === undefined ? defaultThreads() : 1

/** The reason why threads cannot compute together in a worker of this page, for people; `undefined` if they may. */
function obstacleInWorker(): string | undefined {
  if (platform.oneThread) return platform.oneThread
  if (globalThis.crossOriginIsolated === false || typeof SharedArrayBuffer === 'undefined') {
    return 'the page is not isolated from other origins by COOP and COEP'
  }
  // The threads of the crate wait for their events with it.
  return 'waitAsync' in Atomics ? undefined : 'the browser has no Atomics.waitAsync'
}

/** The reason why threads cannot compute together here, for people; `undefined` if they may. */
export function obstacle(): string | undefined {
  const why = obstacleInWorker()
  if (why !== undefined) return why
  try {
    // The value is not 1, so this does not wait.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1)
    return undefined
  } catch {
    return "a page's own thread cannot wait for others"
  }
}

let memory: WebAssembly.Memory | undefined

/** The memory of this thread and those that it starts; `undefined` if the browser refuses it. */
export function sharedMemory(): WebAssembly.Memory | undefined {
  for (const maximum of SIZES) {
    try {
      return memory ??= new WebAssembly.Memory({ initial: FIRST, maximum, shared: true })
    } catch {
      // The next size is smaller.
    }
  }
  return undefined
}

/**
 * Starts threads for the model at `start.address`, beside the one that calls, up to `MAX_PER_PROCESSOR` in all. Resolves
 * to the reasons of those that do not run, for people.
 */
export async function startThreads(count: number, start: Start): Promise<string[]> {
  const processors = platform.processors ?? globalThis.navigator?.hardwareConcurrency
  const most = Math.min(count, MAX_PER_PROCESSOR * Math.max(processors ?? PROCESSORS, 1) - 1)
  const threads = Array.from({ length: most }, () => started(start))
  const failures = (await Promise.all(threads)).filter(why => why !== undefined)
  return [...failures, ...Array<string>(count - most).fill(`this machine tells of ${processors ?? 'no'} processors`)]
}

function started(start: Start): Promise<string | undefined> {
  return new Promise(resolve => {
    const patience = setTimeout(resolve, PATIENCE, 'a thread did not start in time')
    const told = (why?: string) => {
      clearTimeout(patience)
      resolve(why)
    }
    let end = () => {}
    const fails = (why: string) => {
      end()
      told(why)
    }
    try {
      const worker = spawn(
        new URL('./compute-worker.js', import.meta.url),
        () => new Worker(new URL('./compute-worker.js', import.meta.url), { type: 'module' })
      )
      // It would wait for ever for a crate that has crashed.
      const unwatch = watch(() => worker.terminate())
      end = () => {
        unwatch()
        worker.terminate()
      }
      worker.onmessage = ({ data }: MessageEvent<Said>) => {
        if (data.runs) return told()
        fails(data.why ?? 'a thread has ended')
      }
      worker.onerror = event => {
        // The others compute what it does not.
        event.preventDefault()
        fails(event.message || 'the script of a thread was not loaded')
      }
      worker.postMessage(start)
    } catch (error) {
      // The page's policy forbids workers, or this browser's workers have none of their own.
      fails(String(error))
    }
  })
}
