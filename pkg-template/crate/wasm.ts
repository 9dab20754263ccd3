// The compiled crate, in one of its modules. Each thread loads a module once, when it is first needed.
import { BitNetError } from '../error.js'
import { platform } from '../platform.js'
import init, { callBack, onPanic, WasmModel } from '../tritloom.js'

/** A module of WebAssembly, by the script that wasm-bindgen has made for it. */
export interface Crate {
  /** Fetches and starts it. */
  init(): Promise<unknown>
  callBack: typeof callBack
  onPanic: typeof onPanic
  WasmModel: typeof WasmModel
  /** The functions about stored models, if the script has come with all of its own. */
  stored?: Stored
}

/** The functions that need no model: those about stored models, and files to look at. Every module has them. */
export type Stored = Pick<
  typeof import('../tritloom.js'), 'cacheClear' | 'cacheDelete' | 'cacheList' | 'cacheVerify' | 'WasmFile'
>

/** The module for the GPU. */
export const onGpu: Crate = {
  init: () => init(platform.asset && { module_or_path: platform.asset('tritloom_bg.wasm') }), callBack, onPanic, WasmModel
}

const loading = new Map<Crate, Promise<void>>()
let crashed: BitNetError | undefined
const onCrash = new Set<(error: BitNetError) => void>()

/** Resolves when the crate can be called. `file` is the module's name, for people. */
export function ready(crate = onGpu, file = 'tritloom_bg.wasm'): Promise<void> {
  if (crashed) return Promise.reject(crashed)
  const known = loading.get(crate)
  if (known) return known
  const started = start(crate, file)
  loading.set(crate, started)
  return started
}

/**
 * Calls `listener` if the crate panics. After a panic, none of its promises settles. Returns a
 * function that removes the listener.
 */
export function watch(listener: (error: BitNetError) => void): () => void {
  onCrash.add(listener)
  return () => onCrash.delete(listener)
}

async function start(crate: Crate, file: string): Promise<void> {
  if (typeof WebAssembly === 'undefined') {
    loading.delete(crate)
    throw new BitNetError('missing-feature', 'the browser has no WebAssembly, or does not allow it')
  }
  try {
    await crate.init()
  } catch (cause) {
    loading.delete(crate)
    const why = cause instanceof Error ? cause.message : cause
    throw new BitNetError('network', `could not load ${file}: ${why}`, { cause })
  }
  crate.onPanic(crash)
  crate.callBack(() => {
    frames.push(/[a-z-]+:\/\/.*?:wasm-function\[/.exec(String(new Error().stack))?.[0])
  })
  // Some crashes are no panics: traps, and exceptions of the browser that pass through the crate.
  if (frames.length === 1) {
    globalThis.addEventListener?.('error', ({ error, message }: ErrorEvent) => {
      if (isOurs(error)) crash(message)
    })
  }
}

/**
 * How the functions of each started module are named in stacks: by its address, or by its hash if the server
 * gives it another type than `application/wasm`. Browsers that name no modules leave them undefined.
 */
const frames: (string | undefined)[] = []

/**
 * Whether an uncaught error has passed through the crate. The page, or a caller's worker, may have
 * errors and WebAssembly of its own. Where stacks name no modules, every trap counts.
 */
export function isOurs(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return frames.some(frame => frame === undefined
    ? error instanceof WebAssembly.RuntimeError
    : String(error.stack).includes(frame))
}

function crash(message: string): void {
  const said = `internal error (please report it, and reload the page): ${message}`
  crashed ??= new BitNetError('internal', said)
  for (const listener of onCrash) listener(crashed)
}
