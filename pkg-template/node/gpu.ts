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

let isEnding = false
const waiting = new Set<Promise<unknown>>()

/** The message by which a thread says that it begins to use Dawn, and the one that asks it to end. */
export const [DAWN, END] = ['tritloom: Dawn', 'tritloom: end']

/** Hears that this thread begins to use Dawn, which must not be ended in the middle: see `finished`. */
export const dawn = { begins: () => {} }

const { versions } = process
const isNode = !('bun' in versions) && !('deno' in versions)

/** Begins no more work of Dawn. Resolves when it does none. */
export async function finished(): Promise<void> {
  isEnding = true
  while (waiting.size > 0) await Promise.allSettled(waiting)
}

/** Notes the work of a method until it ends. Throws if there is no such method. */
function watch(prototype: Record<string, (...args: unknown[]) => Promise<unknown>>, name: string): void {
  const method = prototype[name]
  if (!method) throw new TypeError(`there is no ${name}`)
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
export async function gpu(forCrate = false): Promise<void> {
  looked ??= look()
  await looked
  // The crate looks for the navigator of a page or of a worker. Other libraries may take this program for a worker then.
  if (forCrate && has('gpu') && !('Window' in globalThis || 'WorkerGlobalScope' in globalThis)) {
    Reflect.set(globalThis, 'WorkerGlobalScope', class {})
  }
}

async function look(): Promise<void> {
  if (has('gpu') || !isNode) return
  try {
    await bring()
  } catch {
    // The package is not installed, or it is of a version that is otherwise.
  }
}

const has = (name: string): boolean => name in (globalThis.navigator ?? {})

async function bring(): Promise<void> {
  const name = 'webgpu'
  const { create, globals } = await import(name) as Dawn
  dawn.begins()
  const gpu = create([])
  for (const [owner, name] of WAITING) watch(Reflect.get(globals, owner).prototype, name)
  watch(Object.getPrototypeOf(gpu), 'requestAdapter')
  Object.assign(globalThis, globals)
  const navigator = globalThis.navigator ?? {}
  Object.defineProperty(navigator, 'gpu', { value: gpu, configurable: true })
  Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true })
}
