// Imported before the package's disk-worker.js: after the first five MiB, writes wait in their thread
// until there is something in the storage under the name `release`.
let free = 5 << 20

const getFileHandle = FileSystemDirectoryHandle.prototype.getFileHandle
const released = async () => {
  const root = await navigator.storage.getDirectory()
  return getFileHandle.call(root, 'release').then(() => true, () => false)
}

addEventListener('message', event => {
  if (event.data.kind !== 'write' || (free -= event.data.length) >= 0) return
  if (event.released) return
  event.stopImmediatePropagation()
  const again = async () => {
    while (!await released()) await new Promise(resolve => setTimeout(resolve, 20))
    const message = new MessageEvent('message', { data: event.data })
    message.released = true
    free = Infinity
    dispatchEvent(message)
  }
  again()
})
