// wgpu 30 cannot ask a browser for `subgroups`: its web back end does not map the feature. So the
// browser's own method is wrapped, once, for devices with our label and no others. To be removed
// when wgpu maps it.

/** The label of the crate's devices. */
const LABEL = 'ternlight'

interface Adapter {
  features: ReadonlySet<string>
  requestDevice(descriptor?: { label?: string, requiredFeatures?: Iterable<string> }): Promise<unknown>
}

let asked = false

/** Makes `requestDevice` ask for subgroups where the adapter has them. */
export function askForSubgroups(): void {
  const prototype = (globalThis as { GPUAdapter?: { prototype: Adapter } }).GPUAdapter?.prototype
  if (asked || !prototype) return
  asked = true
  const requestDevice = prototype.requestDevice
  prototype.requestDevice = function (descriptor) {
    if (descriptor?.label === LABEL && this.features.has('subgroups')) {
      descriptor = { ...descriptor, requiredFeatures: [...(descriptor.requiredFeatures ?? []), 'subgroups'] }
    }
    return requestDevice.call(this, descriptor)
  }
}
