// wgpu 30 cannot ask a browser for pipelines that are compiled in another thread: it does not call
// `createComputePipelineAsync`. What the browser compiles without that holds up all work of the GPU that is
// submitted after it. So the device's `createComputePipeline` is another one while wgpu calls it. Remove
// this when wgpu can ask.

interface Device {
  createComputePipeline(descriptor: unknown): unknown
  createComputePipelineAsync(descriptor: unknown): Promise<unknown>
}

/** Calls `create`, during which the device creates pipelines by `instead`. */
function exchanged(device: Device, instead: Device['createComputePipeline'], create: () => void): void {
  const before = Object.getOwnPropertyDescriptor(device, 'createComputePipeline')
  device.createComputePipeline = instead
  try {
    create()
  } finally {
    if (before) Object.defineProperty(device, 'createComputePipeline', before)
    else delete (device as Partial<Device>).createComputePipeline
  }
}

/** Compiles, in another thread, the pipeline that `create` creates. Nobody may use what that gets. */
export function createElsewhere(device: Device, create: () => void): Promise<unknown> {
  let asked: unknown
  exchanged(device, descriptor => (asked = descriptor), create)
  return device.createComputePipelineAsync(asked)
}

/** Makes `create` get the pipeline that was compiled so. */
export function createdElsewhere(device: Device, pipeline: unknown, create: () => void): void {
  exchanged(device, () => pipeline, create)
}
