// Imported before the package: after a message on the channel `reads`, the next read of bytes waits
// for another one. The test changes the file between the two.
const channel = new BroadcastChannel('reads')
let hold = false
let goOn

const { read } = ReadableStreamBYOBReader.prototype
ReadableStreamBYOBReader.prototype.read = async function (view) {
  if (hold) {
    hold = false
    const released = new Promise(resolve => { goOn = resolve })
    channel.postMessage('held')
    await released
  }
  return read.call(this, view)
}

channel.onmessage = ({ data }) => {
  if (data === 'hold') {
    hold = true
    channel.postMessage('ready')
  }
  if (data === 'go on') goOn()
}
