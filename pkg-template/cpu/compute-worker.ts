// A thread that computes for a model on the CPU, in the memory of the thread that made it. It takes parts of
// products until the model is gone.
import type { Said, Start, Threaded } from './threads.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
const scope = globalThis as unknown as {
  postMessage(said: Said): void
  addEventListener(type: 'message', listener: (event: MessageEvent<Start>) => void): void
  close(): void
}

/** Younger than the language that this is compiled for. */
const { waitAsync } = Atomics as unknown as {
  waitAsync(numbers: Int32Array, index: number, value: number): { value: string | Promise<string> }
}

/** Bytes of the thread's stack. */
const STACK = 1 << 20

scope.addEventListener('message', ({ data }) => { void run(data) })

async function run({ script, module, memory, address }: Start): Promise<void> {
  let thread
  try {
    thread = await begun(script, module, memory)
  } catch (error) {
    scope.postMessage({ runs: false, why: String(error) })
    return scope.close()
  }
  scope.postMessage({ runs: true })
  const numbers = new Int32Array(memory.buffer)
  const index = address / 4
  const work = () => {
    try {
      return thread.glue.work(address)
    } catch {
      thread.glue.failed(address)
      return false
    }
  }
  for (let before = Atomics.load(numbers, index); work(); before = Atomics.load(numbers, index)) {
    // A browser can end a thread at once while it waits so.
    await waitAsync(numbers, index, before).value
  }
  thread.free()
  scope.postMessage({ runs: false })
  scope.close()
}

/** All functions that a module imports. A thread that only computes calls none of them. */
const NOTHING = new Proxy({}, { get: () => new Proxy({}, { get: () => () => {} }) })

/** The module in this thread. Rejects if it does not compute rightly. */
async function begun(
  script: string, module: WebAssembly.Module, memory: WebAssembly.Memory
): Promise<{ glue: Threaded, free(): void }> {
  const glue = await glueAt(script)
  glue.provide(NOTHING)
  const ended = glue.initSync({ module, memory, thread_stack_size: STACK })
  const free = () => ended.__wbindgen_thread_destroy()
  if (glue.isRightHere()) return { glue, free }
  free()
  throw new Error('it does not compute rightly')
}

/** The build adds comments to this line that keep bundlers from following it. */
const glueAt = (script: string): Promise<Threaded> => import(script)
