// WebGPU in Node, which has none of its own: by the package `webgpu` (Dawn), if the user has installed it.

/** The package, which need not be there. */
interface Dawn {
  create(options: string[]): object
  globals: object
}

/** The methods of Dawn that give promises. A thread that ends before them ends the whole program. */
const WAITING = [
  ['GPUAdapter', 'requestDevice'], ['GPUDevice', 'createComputePipelineAsync'], ['GPUDevice', 'popErrorScope'],
  ['GPUBuffer', 'mapAsync'], ['GPUQueue', 'onSubmittedWorkDone']
] as const

let isDawn = false
let isEnding = false
const waiting = new Set<Promise<unknown>>()

/** The message by which a thread says that it uses Dawn, and the one that asks it to end then. */
export const [DAWN, END] = ['tritloom: Dawn', 'tritloom: end']

/** Whether this thread uses Dawn, which must not be ended in the middle: see `finished`. */
export const usesDawn = (): boolean => isDawn

/** Begins no more work of Dawn. Resolves when it does none. */
export async function finished(): Promise<void> {
  isEnding = true
  while (waiting.size > 0) await Promise.allSettled(waiting)
}

function watch(prototype: Record<string, (...args: unknown[]) => Promise<unknown>>, name: string): void {
  const method = prototype[name]!
  prototype[name] = function (...args) {
    if (isEnding) return new Promise(() => {})
    const work = method.apply(this, args)
    waiting.add(work)
    const done = () => { waiting.delete(work) }
    work.then(done, done)
    return work
  }
}

let looked: Promise<void> | undefined

/** Puts WebGPU where browsers have it, unless it is there. */
export function gpu(): Promise<void> {
  looked ??= look()
  return looked
}

async function look(): Promise<void> {
  const { versions } = process
  const isNode = !('bun' in versions) && !('deno' in versions)
  if (!has('gpu') && isNode) await bring()
  // The crate looks for the navigator of a page or of a worker.
  if (has('gpu') && !('Window' in globalThis || 'WorkerGlobalScope' in globalThis)) {
    Reflect.set(globalThis, 'WorkerGlobalScope', class {})
  }
}

const has = (name: string): boolean => name in (globalThis.navigator ?? {})

async function bring(): Promise<void> {
  const name = 'webgpu'
  const dawn = await import(name).catch(() => undefined) as Dawn | undefined
  if (!dawn) return
  Object.assign(globalThis, dawn.globals)
  for (const [owner, name] of WAITING) watch(Reflect.get(dawn.globals, owner).prototype, name)
  isDawn = true
  const navigator = globalThis.navigator ?? {}
  Object.defineProperty(navigator, 'gpu', { value: dawn.create([]), configurable: true })
  Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true })
}
