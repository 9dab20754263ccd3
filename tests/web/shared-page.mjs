// The parts of a page that many tests share: kept devices, a worker that keeps its own, and the way
// back to a page that no test has changed.
import './kept-devices.mjs'

const script = `import '${location.origin}/tests/web/kept-devices.mjs'; import '${location.origin}/pkg/protocol/worker.js'`
const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))

/** Does as the package's worker does. Only one model at a time can be in it. */
window.worker = new Worker(url, { type: 'module' })

/** The objects in which tests replace something. */
const changeable = [
  globalThis, Navigator.prototype, GPU.prototype, StorageManager.prototype, FileSystemDirectoryHandle.prototype, IDBFactory.prototype,
  IDBObjectStore.prototype
]
const properties = object => Object.getOwnPropertyDescriptors(object)
const NAMES = ['fetch', 'indexedDB', 'structuredClone', 'Worker', 'ReadableStreamBYOBReader']
const before = changeable.map(object => object === globalThis ? pick(properties(object)) : properties(object))

function pick(all) {
  return Object.fromEntries(NAMES.map(name => [name, all[name]]))
}

/** Lets go of the model, and undoes what a test has changed. */
window.restore = async () => {
  await window.model?.dispose()
  window.model = undefined
  for (const [index, object] of changeable.entries()) Object.defineProperties(object, before[index])
  // A test may have put a property of its own in front of the prototype's.
  for (const name of ['gpu', 'locks', 'storage', 'crossOriginStorage']) delete navigator[name]
}
