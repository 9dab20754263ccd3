// A thread that computes for a model on the CPU, in the memory of the thread that made it. It takes parts of
// products until the model is gone.
import type { Start, Threaded } from './threads.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
const scope = globalThis as unknown as {
  postMessage(runs: boolean): void
  addEventListener(type: 'message', listener: (event: MessageEvent<Start>) => void): void
  close(): void
}

/** Bytes of the thread's stack. */
const STACK = 1 << 20

scope.addEventListener('message', ({ data }) => { void run(data) })

async function run({ script, module, memory, address }: Start): Promise<void> {
  let glue: Threaded
  try {
    glue = await glueAt(script)
    // It calls nothing of what a module imports.
    glue.provide(new Proxy({}, { get: () => new Proxy({}, { get: () => () => {} }) }))
    glue.initSync({ module, memory, thread_stack_size: STACK })
    scope.postMessage(true)
  } catch {
    scope.postMessage(false)
    return scope.close()
  }
  try {
    glue.work(address)
  } catch {
    glue.failed(address)
  }
  scope.close()
}

/** The build adds comments to this line that keep bundlers from following it. */
const glueAt = (script: string): Promise<Threaded> => import(script)
