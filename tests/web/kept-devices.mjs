// Imported before the package: loads of this thread, one after the other, share GPU devices, and
// with them the compiled kernels, which take a software adapter longer than most tests take. When
// the package destroys a device, its buffers are destroyed, and the next load that asks for the
// same features and limits gets it.
const idle = new Map()

const requestDevice = GPUAdapter.prototype.requestDevice
GPUAdapter.prototype.requestDevice = async function (descriptor) {
  const wanted = JSON.stringify([[...descriptor.requiredFeatures].sort(), descriptor.requiredLimits])
  if (!idle.has(wanted)) idle.set(wanted, [])
  const devices = idle.get(wanted)
  return devices.pop() ?? kept(await requestDevice.call(this, descriptor), device => devices.push(device))
}

/** A device that is given back by `destroy()`. */
const kept = (device, giveBack) => {
  const { createBuffer, createComputePipeline, createComputePipelineAsync, createShaderModule } = GPUDevice.prototype
  const buffers = new Set()
  // The browser reuses a pipeline as long as the page holds on to one with the same code.
  const codes = new WeakMap()
  const pipelines = new Map()
  device.createBuffer = descriptor => {
    const buffer = createBuffer.call(device, descriptor)
    buffers.add(buffer)
    return buffer
  }
  device.createShaderModule = descriptor => {
    const module = createShaderModule.call(device, descriptor)
    codes.set(module, descriptor.code)
    return module
  }
  const keep = (descriptor, pipeline) => {
    pipelines.set(codes.get(descriptor.compute.module), pipeline)
    return pipeline
  }
  device.createComputePipeline = descriptor => keep(descriptor, createComputePipeline.call(device, descriptor))
  device.createComputePipelineAsync = async descriptor =>
    keep(descriptor, await createComputePipelineAsync.call(device, descriptor))
  device.destroy = () => {
    device.onuncapturederror = null
    for (const buffer of buffers) buffer.destroy()
    buffers.clear()
    giveBack(device)
  }
  return device
}
