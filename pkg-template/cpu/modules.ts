// The modules of WebAssembly with which the CPU computes. A thread fetches the one that it uses. It comes
// with a script of its own, which imports nothing, so that every bundler can copy both as they are.
import { badOption } from '../check.js'
import { onGpu, ready } from '../crate/wasm.js'
import type { Crate } from '../crate/wasm.js'
import { BitNetError, fetched } from '../error.js'
import { Disk } from '../threads/disk.js'
import { FetchThreads } from '../threads/fetching.js'
import type { LoadOptions } from '../types.js'
import { pause } from './pause.js'
import { NO_SIMD, runnable } from './probes.js'
import type { Name } from './probes.js'

/** The options that concern the choice. The crate does not know the first two. */
export type Choosing = Pick<LoadOptions, 'backend' | 'threads' | 'strict' | 'gpu'>

/** What computes. */
export interface Chosen {
  crate: Crate
  /** Why there is no GPU, for people, if the CPU was chosen because of that. */
  why?: string
  /** Sentences for people on how it computes. */
  notes: string[]
}

/** The script of a module. `provide` gives it what it would import. */
interface Glue extends Omit<Crate, 'init'> {
  default(from: { module_or_path: URL }): Promise<unknown>
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
    return { init: () => glue.default({ module_or_path: wasm }), callBack, onPanic, WasmModel }
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

/** The CPU. `why` says why there is no GPU, if that is the reason. */
export async function onCpu(why?: string): Promise<Chosen> {
  const notes = why === undefined ? [] : [`the CPU computes: ${why}`]
  for (const name of runnable()) {
    const crate = await crateOf(name)
    try {
      await ready(crate, `tritloom-${name}.wasm`)
      return why === undefined ? { crate, notes } : { crate, why, notes }
    } catch (error) {
      const fault = broken(error)
      if (fault === undefined) throw error
      notes.push(`the module ${name} does not run here: ${fault}`)
    }
  }
  const lack = notes.length > (why === undefined ? 0 : 1) ? notes : [...notes, NO_SIMD]
  throw new BitNetError('missing-feature', lack.join('; '))
}

/** The choice by options that are not checked yet. `missing` says why there is no GPU. */
export async function checked(
  { backend = 'auto', threads, strict, gpu }: Choosing,
  missing: (gpu: Choosing['gpu']) => Promise<string | undefined>
): Promise<Chosen> {
  if (!['auto', 'webgpu', 'cpu'].includes(backend)) {
    throw badOption('backend', `must be 'auto', 'webgpu' or 'cpu'`)
  }
  if (threads !== undefined && !(Number.isInteger(threads) && threads > 0 && threads < 2 ** 32)) {
    throw badOption('threads', 'must be an integer from 1 to 4294967295')
  }
  if (backend === 'cpu') return onCpu()
  const why = backend === 'webgpu' || strict === true ? undefined : await missing(gpu)
  return why === undefined ? { crate: onGpu, notes: [] } : onCpu(why)
}
