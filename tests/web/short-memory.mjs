// Imported before the package: main memory has no room for the layers that the GPU does not hold. All other arrays
// are made by `new`.
const { construct } = Reflect
Reflect.construct = (target, args, ...others) => {
  if (target === Uint8Array) throw new RangeError('Array buffer allocation failed')
  return construct(target, args, ...others)
}

// The method that files of a worker refuse: that of its name, until a page says another.
const files = globalThis.FileSystemSyncAccessHandle?.prototype
if (files) {
  let refused = globalThis.name
  const channel = new BroadcastChannel('short-memory')
  channel.onmessage = ({ data }) => {
    refused = data
    channel.postMessage('heard')
  }
  for (const name of ['read', 'write', 'truncate']) {
    const method = files[name]
    files[name] = function (...given) {
      if (name === refused) throw new DOMException(`no ${name}`, 'UnknownError')
      return method.apply(this, given)
    }
  }
}
