// wgpu 30 cannot ask a browser for the feature `subgroups`: its web back end does not map it. So
// this wraps the browser's own `requestDevice`, once, and only for devices with our label. Remove
// it when wgpu maps the feature. What devices need in Firefox is done here too: see hurry.ts.
import { hurry } from './hurry.js'

/** The label of the crate's devices. */
const LABEL = 'ternlight'

interface Adapter {
  features: ReadonlySet<string>
  requestDevice(descriptor?: DeviceDescriptor): Promise<Parameters<typeof hurry>[0]>
}

interface DeviceDescriptor {
  label?: string
  requiredFeatures?: Iterable<string>
}

let wrapped = false

/** Makes `requestDevice` ask for subgroups where the adapter has them, and hurry what it gives. */
export function askForSubgroups(): void {
  const { GPUAdapter } = globalThis as { GPUAdapter?: { prototype: Adapter } }
  if (wrapped || !GPUAdapter) return
  wrapped = true
  const requestDevice = GPUAdapter.prototype.requestDevice
  GPUAdapter.prototype.requestDevice = async function (descriptor) {
    if (descriptor?.label !== LABEL) return requestDevice.call(this, descriptor)
    if (this.features.has('subgroups')) {
      const requiredFeatures = [...(descriptor.requiredFeatures ?? []), 'subgroups']
      descriptor = { ...descriptor, requiredFeatures }
    }
    const device = await requestDevice.call(this, descriptor)
    hurry(device)
    return device
  }
}
