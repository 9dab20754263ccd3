// The modules of WebAssembly with which the CPU computes. A thread fetches the one that it uses. It comes
// with a script of its own, which imports nothing, so that every bundler can copy both as they are.
import { badOption } from '../check.js'
import { onGpu, ready } from '../crate/wasm.js'
import type { Crate, Stored } from '../crate/wasm.js'
import { BitNetError, fetched } from '../error.js'
import { platform } from '../platform.js'
import { Disk } from '../threads/disk.js'
import { FetchThreads } from '../threads/fetching.js'
import { pause } from './pause.js'
import { NO_SIMD, runnable } from './probes.js'
import type { Name } from './probes.js'
import { THREADED } from './threaded.js'
import type { Place } from './threaded.js'
import { defaultThreads, obstacle, sharedMemory, startThreads } from './threads.js'

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
interface Glue extends Omit<Crate, 'init' | 'stored'>, Stored {
  default(from: {
    module_or_path: URL | Promise<BufferSource> | WebAssembly.Module, memory?: WebAssembly.Memory
  }): Promise<unknown>
  provide(modules: Record<string, object>): void
}

/** Where the modules without threads are. */
const PLACES: Record<Name, Place> = {
  relaxed: {
    script: new URL('./tritloom-relaxed.js', import.meta.url), wasm: new URL('./tritloom-relaxed.wasm', import.meta.url)
  },
  simd: {
    script: new URL('./tritloom-simd.js', import.meta.url), wasm: new URL('./tritloom-simd.wasm', import.meta.url)
  }
}

/** The scripts that were fetched. */
const crates = new Map<Place, Promise<Crate>>()

/** The crate in the module of this name. */
function crateAt(name: string, place: Place): Promise<Crate> {
  const known = crates.get(place)
  if (known) return known
  const { script, wasm } = place
  const fetching = fetched(() => glueAt(script)).then(glue => {
    let module: WebAssembly.Module | undefined
    glue.provide({
      './error.js': { BitNetError },
      './threads/disk.js': { Disk },
      './threads/fetching.js': { FetchThreads },
      './cpu/pause.js': { pause },
      './cpu/threads.js': {
        defaultThreads,
        startThreads: (address: number, count: number) =>
          startThreads(count, { script: script.href, module: module!, memory: sharedMemory()!, address })
      }
    })
    const init = async () => {
      const bytes = platform.asset?.(`cpu/tritloom-${name}.wasm`)
      if (!isThreaded(place)) return glue.default({ module_or_path: bytes ?? wasm })
      module = await (bytes ? WebAssembly.compile(await bytes) : compiled(wasm))
      return glue.default({ module_or_path: module, memory: sharedMemory()! })
    }
    const { callBack, onPanic, WasmModel } = glue
    return { init, callBack, onPanic, WasmModel, stored: glue }
  })
  crates.set(place, fetching)
  fetching.catch(() => crates.delete(place))
  return fetching
}

/** A module that has no instance yet. */
async function compiled(url: URL): Promise<WebAssembly.Module> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`)
  const isNamed = response.headers.get('content-type')?.startsWith('application/wasm')
  return isNamed ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer())
}

/** The build adds comments to this line that keep bundlers from following it. */
const glueAt = ({ href }: URL): Promise<Glue> => import(href)

/** Why a module is left for a slower one, for people; `undefined` if the failure is another one. */
const broken = (error: unknown): string | undefined => {
  const cause = error instanceof BitNetError ? error.cause : undefined
  const isBroken = cause instanceof WebAssembly.CompileError || cause instanceof WebAssembly.LinkError
  return isBroken ? cause.message : undefined
}

/** The same for a module with threads that was not fetched: an app may have only the others. */
const missing = (error: unknown, place: Place): string | undefined =>
  isThreaded(place) && error instanceof BitNetError && error.code === 'network' ? error.message : undefined

const isThreaded = (place: Place): boolean => Object.values(THREADED).includes(place)

/** The wishes to the CPU. */
export interface Wishes {
  lack?: Lack
  /** Whether fewer threads than were asked for, or a module that should run but does not, are an error. */
  strict?: boolean | undefined
  threads?: number | undefined
}

/** The CPU, by the fastest module that runs here. */
export async function onCpu({ lack, strict, threads }: Wishes): Promise<Chosen> {
  const notes = lack ? [`the CPU computes: ${lack.why}`] : []
  const names = runnable()
  if (names.length === 0 && lack?.isSlow) return { crate: onGpu, notes: [] }
  let failure = new BitNetError('missing-feature', [...notes, NO_SIMD].join('; '))
  const places: (readonly [string, Place])[] = names.map(name => [name, PLACES[name]])
  // The crate refuses a wrong number.
  const wanted = Number.isInteger(threads) ? threads! : defaultThreads()
  if (names.length > 0 && wanted > 1) {
    const threaded = names.flatMap(name => THREADED[name] ? [[`${name}-threads`, THREADED[name]] as const] : [])
    const why = threaded.length > 0 ? obstacle() : 'this build of the package has no module with threads'
    const isRefused = why === undefined && !sharedMemory()
    if (why === undefined && !isRefused) {
      places.unshift(...threaded)
    } else if (isRefused || threads !== undefined) {
      const note = `one thread computes: ${why ?? 'the browser refuses memory that threads share'}`
      if (strict === true) throw new BitNetError('missing-feature', note)
      notes.push(note)
    }
  }
  for (const [name, place] of places) {
    try {
      const crate = await crateAt(name, place)
      await ready(crate, `tritloom-${name}.wasm`)
      return { crate, notes, ...(lack && { why: lack.why }) }
    } catch (error) {
      const fault = broken(error) ?? missing(error, place)
      if (fault === undefined || strict === true) throw error
      failure = error as BitNetError
      notes.push(`the module ${name} does not run here: ${fault}`)
    }
  }
  throw failure
}

/** The back end of an option that is not checked yet, and that is not the GPU. */
export function checked(backend: unknown, wishes: Wishes): Promise<Chosen> {
  if (backend !== 'cpu') throw badOption('backend', `must be 'auto', 'webgpu' or 'cpu'`)
  return onCpu(wishes)
}
