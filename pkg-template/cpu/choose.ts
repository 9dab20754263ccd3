// Chooses what computes a model, before a module of WebAssembly is fetched.
import { described, webgpu } from '../crate/adapter.js'
import { onGpu } from '../crate/wasm.js'
import { fetched } from '../error.js'
import type { LoadOptions } from '../types.js'
import type { Choosing, Chosen } from './modules.js'

/** Chooses the GPU, or the CPU: its scripts are fetched only then. Rejects as `BitNet.load` does. */
export async function chosen({ backend = 'auto', threads, strict, gpu }: Choosing): Promise<Chosen> {
  if (threads === undefined && ['auto', 'webgpu'].includes(backend)) {
    // With `strict`, a GPU that is missing is an error of the GPU's module.
    const why = backend === 'webgpu' || strict === true ? undefined : await missing(gpu)
    if (why === undefined) return { crate: onGpu, notes: [] }
    return (await cpu()).onCpu(why)
  }
  return (await cpu()).checked({ backend, threads, strict, gpu }, missing)
}

const cpu = () => fetched(() => import('./modules.js'))

/** The reason why there is no GPU; `undefined` if there is one. */
async function missing(wishes: LoadOptions['gpu']): Promise<string | undefined> {
  const gpu = webgpu()
  if (!gpu) return 'the browser has no WebGPU'
  try {
    const powerPreference = wishes?.powerPreference ?? 'high-performance'
    const adapter = await gpu.requestAdapter({ powerPreference })
    if (!adapter) return 'the browser has no GPU adapter'
    const { name, software } = described(adapter)
    // Shaders on a CPU are far slower than the CPU's own code.
    return software && wishes?.features?.software === undefined ? `the GPU is a CPU (${name})` : undefined
  } catch {
    // A wish is wrong, or the GPU fails: the GPU's module has an error for that.
    return undefined
  }
}
