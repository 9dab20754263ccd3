// The package's scripts for browsers in Node, as a server's bundle has them that was made without the condition `node`:
// there is no WebGPU, no worker and no storage. tests/node has the scripts for Node. Run with
// `node --test tests/pkg/node.test.mjs` after `npm run build`.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { test } from 'node:test'

const PKG = new URL('../../pkg/', import.meta.url)
const { BitNet, BitNetError } = await import(new URL('index.js', PKG))
const URL_OF_A_MODEL = 'https://example.com/model.gguf'

/** Checks for an error of ours with this code. */
const failsWith = (code, said = /./) => error => {
  assert.ok(error instanceof BitNetError, String(error))
  assert.equal(error.code, code)
  assert.match(error.message, said)
  return true
}

test('availability says that there is no WebGPU', async () => {
  const found = await BitNet.availability()
  assert.equal(found.available, false)
  assert.match(found.reason, /not a browser/)
  assert.deepEqual([found.features, found.limits, found.software], [[], {}, false])
  assert.equal(found.backend, undefined)
  for (const one of [found.backends.webgpu, found.backends.cpu]) assert.deepEqual(one, { available: false, reason: found.reason })
})

test('availability answers where there is a navigator, as in newer releases of Node', async () => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  // Deno has WebGPU too.
  const value = { hardwareConcurrency: 1, gpu: { requestAdapter: () => assert.fail() } }
  Object.defineProperty(globalThis, 'navigator', { value, configurable: true })
  try {
    assert.equal((await BitNet.availability()).available, false)
    assert.equal(await BitNet.cache.persist(), false)
    assert.deepEqual(await BitNet.cache.estimate(), { usage: 0, quota: 0 })
  } finally {
    delete globalThis.navigator
    if (before) Object.defineProperty(globalThis, 'navigator', before)
  }
})

test('the cache is empty', async () => {
  assert.deepEqual(await BitNet.cache.list(), [])
  assert.equal(await BitNet.cache.delete(URL_OF_A_MODEL), undefined)
  assert.equal(await BitNet.cache.clear(), undefined)
  assert.deepEqual(await BitNet.cache.estimate(), { usage: 0, quota: 0 })
  assert.equal(await BitNet.cache.persist(), false)
  await assert.rejects(BitNet.cache.verify(URL_OF_A_MODEL), failsWith('not-cached', /example\.com/))
})

test('the cache refuses what is no address', async () => {
  for (const url of ['http://', 'model.gguf', undefined, null, 42]) {
    await assert.rejects(BitNet.cache.delete(url), failsWith('bad-option', /`url`/))
    await assert.rejects(BitNet.cache.verify(url), failsWith('bad-option', /`url`/))
    await assert.rejects(BitNet.cache.missing(url), failsWith('bad-option', /`url`/))
  }
})

test('a load is refused: first for its options, then for want of WebGPU', async () => {
  for (const options of [null, 'use', 7, true, [], () => {}]) {
    const refused = failsWith('bad-option', /`options`: must be an object/)
    await assert.rejects(BitNet.load(URL_OF_A_MODEL, options), refused)
  }
  const wrongWorker = BitNet.load(URL_OF_A_MODEL, { worker: null })
  await assert.rejects(wrongWorker, failsWith('bad-option', /`worker`/))
  await assert.rejects(BitNet.load('http://'), failsWith('bad-option', /`source`/))
  for (const worker of [true, false]) {
    const load = BitNet.load(URL_OF_A_MODEL, { worker })
    await assert.rejects(load, failsWith('no-webgpu', /not a browser/))
  }
})

test('the widget can be imported where there are no elements', async () => {
  const { TldrWidget } = await import(new URL('widget.js', PKG))
  assert.equal(typeof TldrWidget, 'function')
  const { describeProgress } = await import(new URL('words.js', PKG))
  assert.equal(describeProgress({ phase: 'compile' }), 'Preparing the programs')
})

test('every compiled file has a source map that holds its source', () => {
  const maps = readdirSync(PKG, { recursive: true }).filter(name => name.endsWith('.js.map'))
  assert.ok(maps.includes('index.js.map') && maps.includes('protocol/worker.js.map'), maps.join(' '))
  for (const name of maps) {
    const map = JSON.parse(readFileSync(new URL(name, PKG), 'utf8'))
    assert.equal(map.sources.length, 1, name)
    const template = new URL(`../pkg-template/${map.sources[0]}`, PKG)
    assert.equal(map.sourcesContent[0], readFileSync(template, 'utf8'), name)
    const script = readFileSync(new URL(name.replace(/\.map$/, ''), PKG), 'utf8')
    assert.match(script, new RegExp(`//# sourceMappingURL=${basename(name).replaceAll('.', '\\.')}\\s*$`))
  }
})

test('package.json names what npm shows, and no address that does not exist', () => {
  const described = JSON.parse(readFileSync(new URL('package.json', PKG), 'utf8'))
  assert.match(described.engines.node, /^>=\d+/)
  assert.ok(described.keywords.includes('webgpu'))
  for (const field of ['repository', 'homepage', 'bugs']) {
    assert.equal(described[field], undefined, field)
  }
})

test('an array over shared memory is copied: browsers read none where a load needs it', async () => {
  const { portable } = await import(new URL('protocol/source.js', PKG))
  const shared = new Uint8Array(new SharedArrayBuffer(8), 2, 3).fill(7)
  const copied = portable(shared)
  assert.deepEqual(copied, Uint8Array.of(7, 7, 7))
  assert.ok(copied.buffer instanceof ArrayBuffer)
  const own = Uint8Array.of(1)
  assert.equal(portable(own), own)
})
