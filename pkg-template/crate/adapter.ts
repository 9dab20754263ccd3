// The browser's GPU adapter. It is asked before the compiled crate is downloaded.
import { platform } from '../platform.js'

/** The part of an adapter that the package needs. */
export interface Adapter {
  features: ReadonlySet<string>
  limits: object
  info?: AdapterInfo
  /** The older name of the same field in `info`. */
  isFallbackAdapter?: boolean
  requestDevice(): Promise<Device>
}

/** A device, as far as the speed of its memory concerns it. */
interface Device {
  createBuffer(descriptor: { size: number, usage: number }): object
  createCommandEncoder(): {
    copyBufferToBuffer(from: object, at: number, to: object, there: number, bytes: number): void
    finish(): object
  }
  queue: { submit(commands: object[]): void, onSubmittedWorkDone(): Promise<undefined> }
  lost: Promise<object>
  destroy(): void
}

interface AdapterInfo {
  vendor?: string
  architecture?: string
  device?: string
  description?: string
  isFallbackAdapter?: boolean
}

/** `navigator.gpu`. */
interface Gpu {
  requestAdapter(options?: object): Promise<Adapter | null>
}

/** The names of adapters that are CPUs. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render/i

/** Asks for an adapter that lacks some of WebGPU, which the kernels do not need. Old cards have no other. */
export const COMPATIBILITY = { featureLevel: 'compatibility' }

/** Milliseconds after which a GPU that does not answer counts as none. */
const PATIENCE = 10_000

/** The adapter, or the reason why there is none. */
export async function adapterOrWhy(
  powerPreference = 'high-performance', patience = PATIENCE
): Promise<Adapter | string> {
  const gpu = (globalThis.navigator as { gpu?: Gpu } | undefined)?.gpu
  if (!gpu) {
    if (platform.thread) return 'there is no WebGPU here; in Node, the package `webgpu` brings it'
    return globalThis.isSecureContext
      ? 'this browser has no WebGPU; use a current Chrome, Edge, Safari or Firefox'
      : 'WebGPU needs a secure page: https or localhost'
  }
  let timer
  const late = new Promise<string>(resolve => {
    timer = setTimeout(() => resolve('this browser’s WebGPU does not answer'), patience)
  })
  try {
    const adapter = await Promise.race([asked(gpu, { powerPreference }), late])
    return adapter ?? 'this browser has WebGPU but no GPU adapter for it'
  } catch (error) {
    const why = error instanceof Error ? error.message : error
    return `this browser’s WebGPU gives no GPU adapter: ${why}`
  } finally {
    clearTimeout(timer)
  }
}

/** The adapter, or else one in compatibility mode. Browsers without this mode do as if it were not asked for. */
async function asked(gpu: Gpu, options: object): Promise<Adapter | null> {
  return await gpu.requestAdapter(options) ?? gpu.requestAdapter({ ...options, ...COMPATIBILITY })
}

/** The adapter as it calls itself, and whether it is a CPU. */
export function described(adapter: Adapter): { name: string, software: boolean } {
  const info = adapter.info ?? {}
  const { vendor, architecture, device, description } = info
  const name = [vendor, architecture, device, description].filter(Boolean).join(' ')
  const isFallback = info.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false
  return { name, software: isFallback || SOFTWARE.test(name) }
}
