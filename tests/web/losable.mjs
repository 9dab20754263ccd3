// Takes the GPU away from the thread that imports this before the package, as a browser may: what is
// posted to the channel `gpu` is done to its devices. `lose` destroys them, `none` leaves no adapter
// to open another on, `some` gives it back.
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

new BroadcastChannel('gpu').onmessage = ({ data }) => {
  if (data === 'lose') for (const device of devices.splice(0)) device.destroy()
  else adapters = data === 'some'
}
