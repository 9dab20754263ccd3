// Imported before the package, takes the GPU away from its thread, as a browser may. It obeys
// messages on the channel `gpu`: `lose` destroys the devices, `none` leaves no adapter to open
// another on, and `some` gives the adapter back. It answers `done`: other messages to this thread may
// overtake those of a channel.
const devices = []
let adapters = true

const requestDevice = GPUAdapter.prototype.requestDevice
GPUAdapter.prototype.requestDevice = async function (descriptor) {
  const device = await requestDevice.call(this, descriptor)
  devices.push(device)
  return device
}

const requestAdapter = GPU.prototype.requestAdapter
GPU.prototype.requestAdapter = async function (options) {
  return adapters ? requestAdapter.call(this, options) : null
}

const channel = new BroadcastChannel('gpu')
channel.onmessage = ({ data }) => {
  if (data === 'done') return
  if (data === 'lose') for (const device of devices.splice(0)) device.destroy()
  else adapters = data === 'some'
  channel.postMessage('done')
}
