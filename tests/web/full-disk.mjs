// Imported before the package's disk-worker.js: its files have room for five MiB, and for as many
// bytes more as each message on the channel `room` says.
let room = 5 << 20
new BroadcastChannel('room').onmessage = ({ data }) => { room += data }

const { write } = FileSystemSyncAccessHandle.prototype
FileSystemSyncAccessHandle.prototype.write = function (bytes, options) {
  if (bytes.length > room) throw new DOMException('the disk is full', 'QuotaExceededError')
  room -= bytes.length
  return write.call(this, bytes, options)
}
