// Whether this browser can run a model, without loading anything: TypeScript, so that a page can
// say so before it fetches the compiled crate.
import type { Availability } from './types.js'

interface Adapter {
  features: ReadonlySet<string>
  limits: object
  info?: { vendor?: string, architecture?: string, device?: string, description?: string, isFallbackAdapter?: boolean }
  isFallbackAdapter?: boolean
}

/** Adapters that are CPUs, by what they call themselves. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render/i

export async function availability(): Promise<Availability> {
  const gpu = (globalThis.navigator as { gpu?: { requestAdapter(options?: object): Promise<Adapter | null> } }).gpu
  if (!gpu) {
    return unavailable(globalThis.isSecureContext
      ? 'this browser has no WebGPU; use a current Chrome, Edge, Safari or Firefox'
      : 'WebGPU needs a secure page: https or localhost')
  }
  let adapter
  try {
    adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' })
  } catch (error) {
    return unavailable(`the browser gives no GPU adapter: ${error instanceof Error ? error.message : error}`)
  }
  if (!adapter) return unavailable('this browser has WebGPU but no GPU adapter for it')
  const { vendor = '', architecture = '', device = '', description = '', isFallbackAdapter } = adapter.info ?? {}
  const name = [vendor, architecture, device, description].filter(Boolean).join(' ')
  return {
    available: true,
    adapter: name,
    features: [...adapter.features].sort(),
    limits: numbers(adapter.limits),
    software: isFallbackAdapter ?? adapter.isFallbackAdapter ?? false ? true : SOFTWARE.test(name)
  }
}

const unavailable = (reason: string): Availability => ({ available: false, reason, features: [], limits: {}, software: false })

/** The limits are getters of a prototype, which no copy would keep. */
function numbers(limits: object): Record<string, number> {
  const found: Record<string, number> = {}
  for (const name in limits) {
    const value = (limits as Record<string, unknown>)[name]
    if (typeof value === 'number') found[name] = value
  }
  return found
}
