// wgpu 30 cannot ask a browser for the feature `subgroups`: its web back end does not map it. So
// this wraps the browser's own `requestDevice`, once, and only for devices with our label. Remove
// it when wgpu maps the feature.

/** The label of the crate's devices. */
const LABEL = 'ternlight'

interface Adapter {
  features: ReadonlySet<string>
  requestDevice(descriptor?: DeviceDescriptor): Promise<unknown>
}

interface DeviceDescriptor {
  label?: string
  requiredFeatures?: Iterable<string>
}

let wrapped = false

/** Makes `requestDevice` ask for subgroups where the adapter has them. */
export function askForSubgroups(): void {
  const { GPUAdapter } = globalThis as { GPUAdapter?: { prototype: Adapter } }
  if (wrapped || !GPUAdapter) return
  wrapped = true
  const requestDevice = GPUAdapter.prototype.requestDevice
  GPUAdapter.prototype.requestDevice = function (descriptor) {
    if (descriptor?.label === LABEL && this.features.has('subgroups')) {
      const requiredFeatures = [...(descriptor.requiredFeatures ?? []), 'subgroups']
      descriptor = { ...descriptor, requiredFeatures }
    }
    return requestDevice.call(this, descriptor)
  }
}
