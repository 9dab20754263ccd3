// wgpu 30 cannot ask a browser to compile a pipeline in another thread, because it does not call
// `createComputePipelineAsync`. While the browser compiles by the ordinary call, all work that is
// submitted to the GPU after that call waits. So this replaces the device's `createComputePipeline`
// while wgpu calls it. Remove this when wgpu can ask.

interface Device {
  createComputePipeline(descriptor: unknown): unknown
  createComputePipelineAsync(descriptor: unknown): Promise<unknown>
}

/** Calls `create`. Until it returns, the device creates pipelines by `instead`. */
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

/**
 * Compiles, in another thread, the pipeline that `create` asks for. `create` must not use its
 * result.
 */
export function createElsewhere(device: Device, create: () => void): Promise<unknown> {
  let asked: unknown
  exchanged(device, descriptor => (asked = descriptor), create)
  return device.createComputePipelineAsync(asked)
}

/** Calls `create`, in which the device gives the `pipeline` that `createElsewhere` has compiled. */
export function createdElsewhere(device: Device, pipeline: unknown, create: () => void): void {
  exchanged(device, () => pipeline, create)
}
