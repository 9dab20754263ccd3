// The compiled crate. Each thread loads it once, when it is first needed.
import { BitNetError } from '../error.js'
import init, { callBack, onPanic } from '../tritloom.js'

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
  callBack(() => {
    const [place] = /[a-z-]+:\/\/.*?:wasm-function\[/.exec(String(new Error().stack)) ?? []
    frame = place
    isRunning = true
  })
  // Some crashes are no panics: traps, and exceptions of the browser that pass through the crate.
  globalThis.addEventListener('error', ({ error, message }: ErrorEvent) => {
    if (isOurs(error)) crash(message)
  })
}

/** Whether the crate has started. */
let isRunning = false
/**
 * How the crate's own functions are named in stacks: by its address, or by its hash if the server
 * gives it another type than `application/wasm`. Browsers that name no modules leave it undefined.
 */
let frame: string | undefined

/**
 * Whether an uncaught error has passed through the crate. The page, or a caller's worker, may have
 * errors and WebAssembly of its own. Where stacks name no modules, every trap counts.
 */
export function isOurs(error: unknown): boolean {
  if (!isRunning || !(error instanceof Error)) return false
  if (frame === undefined) return error instanceof WebAssembly.RuntimeError
  return String(error.stack).includes(frame)
}

function crash(message: string): void {
  const said = `internal error (please report it, and reload the page): ${message}`
  crashed ??= new BitNetError('internal', said)
  for (const listener of onCrash) listener(crashed)
}
