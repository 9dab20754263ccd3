// The compiled crate, loaded once per thread when it is first needed.
import { BitNetError } from './error.js'
import init, { onPanic } from './ternlight.js'

let loading: Promise<void> | undefined
let crashed: BitNetError | undefined
const onCrash = new Set<(error: BitNetError) => void>()

/** Resolves when the crate can be called. */
export function ready(): Promise<void> {
  if (crashed) return Promise.reject(crashed)
  loading ??= start()
  return loading
}

/** Calls `listener` if the crate panics, after which none of its promises settles. */
export function watch(listener: (error: BitNetError) => void): () => void {
  onCrash.add(listener)
  return () => onCrash.delete(listener)
}

async function start(): Promise<void> {
  try {
    await init()
  } catch (error) {
    loading = undefined
    throw new BitNetError('network', `could not load ternlight_bg.wasm: ${error instanceof Error ? error.message : error}`)
  }
  onPanic(crash)
  // A trap without a panic, or an exception of the browser's that passes through the crate.
  globalThis.addEventListener('error', ({ error, message }: ErrorEvent) => {
    if (error instanceof WebAssembly.RuntimeError || /ternlight_bg/.test(error?.stack)) crash(message)
  })
}

function crash(message: string): void {
  crashed ??= new BitNetError('internal', `internal error (please report it, and reload the page): ${message}`)
  for (const listener of onCrash) listener(crashed)
}
