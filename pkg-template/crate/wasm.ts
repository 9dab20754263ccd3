// The compiled crate. Each thread loads it once, when it is first needed.
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
 * Calls `listener` if the crate panics. After a panic, none of its promises settles. Returns a
 * function that removes the listener.
 */
export function watch(listener: (error: BitNetError) => void): () => void {
  onCrash.add(listener)
  return () => onCrash.delete(listener)
}

async function start(): Promise<void> {
  try {
    await init()
  } catch (cause) {
    loading = undefined
    const why = cause instanceof Error ? cause.message : cause
    throw new BitNetError('network', `could not load tritloom_bg.wasm: ${why}`, { cause })
  }
  onPanic(crash)
  // Some crashes are no panics: traps, and exceptions of the browser that pass through the crate.
  globalThis.addEventListener('error', ({ error, message }: ErrorEvent) => {
    if (isOurs(error)) crash(message)
  })
}

/** The name of the crate's file. A bundler may have changed it. */
const FILE = new URL('../tritloom_bg.wasm', import.meta.url).pathname.split('/').at(-1)!

/**
 * Whether an uncaught error has passed through the crate. The page, or a caller's worker, may have
 * errors and WebAssembly of its own. A trap counts too if it does not say in which file it was.
 */
export function isOurs(error: unknown): boolean {
  const stack = error instanceof Error ? error.stack ?? '' : ''
  if (stack.includes(FILE)) return true
  return error instanceof WebAssembly.RuntimeError && !/(?:https?|blob):\S*:wasm-function/.test(stack)
}

function crash(message: string): void {
  const said = `internal error (please report it, and reload the page): ${message}`
  crashed ??= new BitNetError('internal', said)
  for (const listener of onCrash) listener(crashed)
}
