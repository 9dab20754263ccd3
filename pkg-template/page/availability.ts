// Finds out whether a model can run here. It is TypeScript, so that a page can call it before it
// downloads the compiled crate. Fetched when it is asked.
import { isBrowser, NO_BROWSER } from './browser.js'
import type { Availability } from '../types.js'

interface Adapter {
  features: ReadonlySet<string>
  limits: object
  info?: AdapterInfo
  /** The older name of the same field in `info`. */
  isFallbackAdapter?: boolean
}

interface AdapterInfo {
  vendor?: string
  architecture?: string
  device?: string
  description?: string
  isFallbackAdapter?: boolean
}

interface Gpu {
  requestAdapter(options?: object): Promise<Adapter | null>
}

/** The names of adapters that are CPUs. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render/i

/** See `BitNet.availability`. */
export async function availability(): Promise<Availability> {
  const gpu = (globalThis.navigator as { gpu?: Gpu } | undefined)?.gpu
  // Deno has WebGPU, but no storage and no page.
  if (!gpu || !isBrowser()) return unavailable(whyNoGpu())
  let adapter
  try {
    adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' })
  } catch (error) {
    const why = error instanceof Error ? error.message : error
    return unavailable(`the browser gives no GPU adapter: ${why}`)
  }
  if (!adapter) return unavailable('this browser has WebGPU but no GPU adapter for it')
  const info = adapter.info ?? {}
  const { vendor, architecture, device, description } = info
  const name = [vendor, architecture, device, description].filter(Boolean).join(' ')
  const isFallback = info.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false
  return {
    available: true,
    adapter: name,
    features: [...adapter.features].sort(),
    limits: numbers(adapter.limits),
    software: isFallback || SOFTWARE.test(name)
  }
}

function whyNoGpu(): string {
  if (!isBrowser()) return NO_BROWSER
  return globalThis.isSecureContext
    ? 'this browser has no WebGPU; use a current Chrome, Edge, Safari or Firefox'
    : 'WebGPU needs a secure page: https or localhost'
}

const unavailable = (reason: string): Availability =>
  ({ available: false, reason, features: [], limits: {}, software: false })

/** The numbers of an object whose fields are getters of its prototype, which `{...}` leaves out. */
function numbers(limits: object): Record<string, number> {
  const found: Record<string, number> = {}
  for (const name in limits) {
    const value = (limits as Record<string, unknown>)[name]
    if (typeof value === 'number') found[name] = value
  }
  return found
}
