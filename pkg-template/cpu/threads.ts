// Threads that compute together, in one memory. Only pages that are isolated from other origins can share memory.
import { spawn } from '../threads/spawn.js'

/** The parts of wasm-bindgen's script of a module that a thread calls. */
export interface Threaded {
  provide(modules: Record<string, object>): void
  initSync(from: { module: WebAssembly.Module, memory: WebAssembly.Memory, thread_stack_size: number }): unknown
  /** Computes until the pool at `address` ends. */
  work(address: number): void
  /** To be called after `work` has trapped. */
  failed(address: number): void
}

/** What a thread needs to start. */
export interface Start {
  script: string
  module: WebAssembly.Module
  memory: WebAssembly.Memory
  address: number
}

/** Milliseconds to wait for the threads of a load. Those that come later help too. */
const PATIENCE = 3000

/** The largest sizes of the memory to ask for, in pages of 64 KiB: a phone may refuse the first. */
const MOST = [65536, 32768, 16384]

/** Pages at the beginning, as the module asks for. */
const LEAST = 64

/** Memory that threads share; `undefined` where the browser gives none. */
export function sharedMemory(): WebAssembly.Memory | undefined {
  if (!globalThis.crossOriginIsolated) return undefined
  for (const maximum of MOST) {
    try {
      return new WebAssembly.Memory({ initial: LEAST, maximum, shared: true })
    } catch {
      // The next one is smaller.
    }
  }
  return undefined
}

/** Starts threads for the pool at `address`. Resolves to the number of those that run. */
export async function startThreads(count: number, start: Start): Promise<number> {
  const threads = Array.from({ length: count }, () => started(start))
  return (await Promise.all(threads)).filter(Boolean).length
}

function started(start: Start): Promise<boolean> {
  return new Promise(resolve => {
    setTimeout(() => resolve(false), PATIENCE)
    try {
      const worker = spawn(
        new URL('./compute-worker.js', import.meta.url),
        () => new Worker(new URL('./compute-worker.js', import.meta.url), { type: 'module' })
      )
      worker.onmessage = ({ data }: MessageEvent<boolean>) => resolve(data)
      worker.onerror = event => {
        // The others compute what it does not.
        event.preventDefault()
        resolve(false)
      }
      worker.postMessage(start)
    } catch {
      // The page's policy forbids workers.
      resolve(false)
    }
  })
}
