// The modules of WebAssembly with which the CPU computes. A thread fetches the one that it uses. It comes
// with a script of its own, which imports nothing, so that every bundler can copy both as they are.
import { badOption } from '../check.js'
import { onGpu, ready } from '../crate/wasm.js'
import type { Crate } from '../crate/wasm.js'
import { BitNetError, fetched } from '../error.js'
import { platform } from '../platform.js'
import { Disk } from '../threads/disk.js'
import { FetchThreads } from '../threads/fetching.js'
import { pause } from './pause.js'
import { NO_SIMD, runnable } from './probes.js'
import type { Name } from './probes.js'

/** The choice: a module, and how it computes. */
export interface Chosen {
  crate: Crate
  /** Why there is no GPU, for people, if the CPU was chosen because of that. */
  why?: string
  /** Sentences for people on how it computes. */
  notes: string[]
  /** The choice after this failure, if there is one. */
  instead?(failure: BitNetError): Promise<Chosen | undefined>
}

/** Why there is no GPU. */
export interface Lack {
  why: string
  /** Whether there is a GPU, but a CPU plays it. The CPU's own code is faster. */
  isSlow?: boolean
}

/** The script of a module. `provide` gives it what it would import. */
interface Glue extends Omit<Crate, 'init'> {
  default(from: { module_or_path: URL | Promise<BufferSource> }): Promise<unknown>
  provide(modules: Record<string, object>): void
}

/** Where the script and the module of each name are. */
const PLACES: Record<Name, { script: URL, wasm: URL }> = {
  relaxed: {
    script: new URL('./tritloom-relaxed.js', import.meta.url), wasm: new URL('./tritloom-relaxed.wasm', import.meta.url)
  },
  simd: {
    script: new URL('./tritloom-simd.js', import.meta.url), wasm: new URL('./tritloom-simd.wasm', import.meta.url)
  }
}

/** The scripts that were fetched. */
const crates = new Map<Name, Promise<Crate>>()

function crateOf(name: Name): Promise<Crate> {
  const known = crates.get(name)
  if (known) return known
  const { script, wasm } = PLACES[name]
  const fetching = fetched(() => glueAt(script)).then(glue => {
    glue.provide({
      './error.js': { BitNetError },
      './threads/disk.js': { Disk },
      './threads/fetching.js': { FetchThreads },
      './cpu/pause.js': { pause }
    })
    const { callBack, onPanic, WasmModel } = glue
    const from = () => platform.asset?.(`cpu/tritloom-${name}.wasm`) ?? wasm
    return { init: () => glue.default({ module_or_path: from() }), callBack, onPanic, WasmModel }
  })
  crates.set(name, fetching)
  fetching.catch(() => crates.delete(name))
  return fetching
}

/** The build adds comments to this line that keep bundlers from following it. */
const glueAt = ({ href }: URL): Promise<Glue> => import(href)

/** Why a module is left for a slower one, for people; `undefined` if the failure is another one. */
const broken = (error: unknown): string | undefined => {
  const cause = error instanceof BitNetError ? error.cause : undefined
  const isBroken = cause instanceof WebAssembly.CompileError || cause instanceof WebAssembly.LinkError
  return isBroken ? cause.message : undefined
}

/** The CPU, by the fastest module that runs here. With `strict`, a module that should run but does not is an error. */
export async function onCpu({ lack, strict }: { lack?: Lack, strict?: boolean }): Promise<Chosen> {
  const notes = lack ? [`the CPU computes: ${lack.why}`] : []
  const names = runnable()
  if (names.length === 0 && lack?.isSlow) return { crate: onGpu, notes: [] }
  let failure = new BitNetError('missing-feature', [...notes, NO_SIMD].join('; '))
  for (const name of names) {
    const crate = await crateOf(name)
    try {
      await ready(crate, `tritloom-${name}.wasm`)
      return { crate, notes, ...(lack && { why: lack.why }) }
    } catch (error) {
      const fault = broken(error)
      if (fault === undefined || strict === true) throw error
      failure = error as BitNetError
      notes.push(`the module ${name} does not run here: ${fault}`)
    }
  }
  throw failure
}

/** The back end of an option that is not checked yet, and that is not the GPU. */
export function checked(backend: unknown, strict?: boolean): Promise<Chosen> {
  if (backend !== 'cpu') throw badOption('backend', `must be 'auto', 'webgpu' or 'cpu'`)
  return onCpu({ ...(strict !== undefined && { strict }) })
}
