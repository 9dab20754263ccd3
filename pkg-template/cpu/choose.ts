// Chooses what computes a model, before a module of WebAssembly is fetched.
import { adapterOrWhy, described } from '../crate/adapter.js'
import { onGpu } from '../crate/wasm.js'
import { fetched } from '../error.js'
import type { BitNetError } from '../error.js'
import { platform } from '../platform.js'
import type { ErrorCode, LoadOptions } from '../types.js'
import type { Chosen, Lack } from './modules.js'

/** The options that concern the choice. The crate does not know the first one. */
type Choosing = Pick<LoadOptions, 'backend' | 'threads' | 'strict' | 'gpu'>

/** The codes of a GPU that turns out to be missing when it is opened. */
const LACKS: ErrorCode[] = ['no-webgpu', 'no-adapter', 'missing-feature']

/** Chooses the GPU, or the CPU: its scripts are fetched only then. Rejects as `BitNet.load` does. */
export async function chosen({ backend = 'auto', threads, strict, gpu }: Choosing): Promise<Chosen> {
  if (backend !== 'auto' && backend !== 'webgpu') return (await cpu()).checked(backend, { threads, strict })
  await platform.gpu?.(true)
  // With `strict`, a GPU that is missing is an error of the GPU's module.
  if (backend === 'webgpu' || strict === true) return { crate: onGpu, notes: [] }
  const lack = await missing(gpu)
  if (lack) return (await cpu()).onCpu({ lack, threads })
  const instead = async ({ code, message }: BitNetError) =>
    LACKS.includes(code) ? (await cpu()).onCpu({ lack: { why: message }, threads }) : undefined
  return { crate: onGpu, notes: [], instead }
}

const cpu = () => fetched(() => import('./modules.js'))

/** The reason why there is no GPU; `undefined` if there is one. */
async function missing(wishes: LoadOptions['gpu']): Promise<Lack | undefined> {
  const adapter = await adapterOrWhy(wishes?.powerPreference)
  if (typeof adapter === 'string') return { why: adapter }
  const { name, software } = described(adapter)
  // Shaders on a CPU are far slower than the CPU's own code.
  if (!software || wishes?.features?.software !== undefined) return
  return { why: `the GPU is a CPU (${name})`, isSlow: true }
}
