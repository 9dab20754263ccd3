// A thread that computes for a model on the CPU, in the memory of the thread that made it. It takes parts of
// products until the model is gone.
import type { Start, Threaded } from './threads.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
const scope = globalThis as unknown as {
  postMessage(runs: boolean): void
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
  const thread = await begun(script, module, memory)
  // True, and then false when the thread ends.
  scope.postMessage(thread !== undefined)
  if (!thread) return scope.close()
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
  scope.postMessage(false)
  scope.close()
}

/** The module in this thread, if it computes rightly. */
async function begun(
  script: string, module: WebAssembly.Module, memory: WebAssembly.Memory
): Promise<{ glue: Threaded, free(): void } | undefined> {
  try {
    const glue = await glueAt(script)
    // It calls nothing that a module imports.
    glue.provide(new Proxy({}, { get: () => ({}) }))
    const ended = glue.initSync({ module, memory, thread_stack_size: STACK })
    return glue.isRightHere() ? { glue, free: () => ended.__wbindgen_thread_destroy() } : undefined
  } catch {
    return undefined
  }
}

/** The build adds comments to this line that keep bundlers from following it. */
const glueAt = (script: string): Promise<Threaded> => import(script)
