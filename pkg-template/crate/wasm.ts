// The compiled crate: loaded once per thread, when it is first needed.
import { BitNetError } from '../error.js'
import init, { onPanic } from '../tritloom.js'

let loading: Promise<void> | undefined
let crashed: BitNetError | undefined
const onCrash = new Set<(error: BitNetError) => void>()

/** Resolves when the crate can be called. */
export function ready(): Promise<void> {
  if (crashed) return Promise.reject(crashed)
  loading ??= start()
  return loading
}

/**
 * Calls `listener` if the crate panics: none of its promises settles after that. Returns a function
 * that ends this.
 */
export function watch(listener: (error: BitNetError) => void): () => void {
  onCrash.add(listener)
  return () => onCrash.delete(listener)
}

async function start(): Promise<void> {
  try {
    await init()
  } catch (error) {
    loading = undefined
    const why = error instanceof Error ? error.message : error
    throw new BitNetError('network', `could not load tritloom_bg.wasm: ${why}`)
  }
  onPanic(crash)
  // Some crashes do not panic: traps, and exceptions of the browser that pass through the crate.
  globalThis.addEventListener('error', ({ error, message }: ErrorEvent) => {
    const isOurs = error instanceof WebAssembly.RuntimeError || /tritloom_bg/.test(error?.stack)
    if (isOurs) crash(message)
  })
}

function crash(message: string): void {
  const said = `internal error (please report it, and reload the page): ${message}`
  crashed ??= new BitNetError('internal', said)
  for (const listener of onCrash) listener(crashed)
}
