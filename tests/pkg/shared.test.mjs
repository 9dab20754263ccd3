// A load that looks for its file in Cross-Origin Storage, with a transport that loads nothing.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mock, test } from 'node:test'
import { BitNetError } from '../../pkg/error.js'
import { load } from '../../pkg/shared/load.js'
import { find, offer } from '../../pkg/shared/storage.js'
import { Registry } from '../web/cross-origin-storage.mjs'

const BYTES = new Blob(['a model'])
const digest = createHash('sha256').update('a model')
const HASH = { algorithm: 'SHA-256', value: digest.copy().digest('hex') }
const integrity = `sha256-${digest.digest('base64')}`
const URL = 'https://example.com/model.gguf'

/** A registry of files, as the browser's interface of one of its forms. */
const stand = (t, form = 'requestFileHandle') => {
  const registry = new Registry()
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  const value = { crossOriginStorage: registry.of('https://example.com', form) }
  Object.defineProperty(globalThis, 'navigator', { value, configurable: true })
  t.after(() => {
    delete globalThis.navigator
    if (before) Object.defineProperty(globalThis, 'navigator', before)
  })
  return registry
}

/** A transport whose calls of `load` end as `answer` says, and what they were. */
const transport = answer => {
  const calls = []
  return {
    calls,
    load: async (source, { cache }, { onItem }) => {
      const from = source instanceof Blob ? 'file' : 'address'
      calls.push(`${from} ${cache}`)
      return answer(`${from} ${cache}`, onItem)
    }
  }
}

const refuse = code => { throw new BitNetError(code, `it is ${code}`) }
const progress = (phase, fraction, notes = []) =>
  ({ phase, loaded: 1, total: 2, fraction, fromCache: false, bytesPerSecond: 3, notes })

for (const form of ['getFileHandle', 'requestFileHandle', 'requestFileHandles']) {
  test(`a file is offered to all sites and found, by ${form}`, async t => {
    const registry = stand(t, form)
    assert.equal(await find(HASH), undefined)
    await offer(HASH, BYTES, () => false)
    assert.equal(registry.entries.get(HASH.value).isGlobal, true)
    assert.equal(await (await find(HASH)).text(), 'a model')
    await offer(HASH, BYTES, () => false)
    await assert.rejects(offer(HASH, new Blob(['other bytes']), () => false), { name: 'DataError' })
    assert.equal(await (await find(HASH)).text(), 'a model')
  })
}

test('what hinders the search is said', async t => {
  const registry = stand(t)
  const handle = await navigator.crossOriginStorage.requestFileHandle(HASH, { create: true })
  assert.match(await find(HASH), /^NotAllowedError: it is being written/)
  await (await handle.createWritable()).close().catch(() => {})
  assert.equal(await find(HASH), undefined)
  registry.onRead = 'refuse'
  assert.match(await find(HASH), /^NotAllowedError: the visitor/)
  navigator.crossOriginStorage = {}
  assert.match(await find(HASH), /^TypeError/)
})

test('a prompt without an answer is waited for five seconds', async t => {
  const registry = stand(t)
  registry.onRead = 'silent'
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  let found
  void find(HASH).then(answer => { found = answer })
  const settled = () => new Promise(resolve => { setImmediate(resolve) })
  mock.timers.tick(4999)
  await settled()
  assert.equal(found, undefined)
  mock.timers.tick(1)
  await settled()
  assert.equal(found, 'no answer in 5 seconds')
})

test('an offer that ends early, or whose write fails, leaves no file that is being written', async t => {
  const registry = stand(t)
  const part = 16 << 20
  const long = { size: 3 * part, slice: (start, end) => new Blob([`${start} ${end}`]) }
  let asked = 0
  await assert.rejects(offer(HASH, long, () => asked++ === 2), { name: 'DataError' })
  assert.equal(asked, 3)
  registry.failure = 'QuotaExceededError'
  await assert.rejects(offer(HASH, BYTES, () => false), { name: 'QuotaExceededError' })
  assert.deepEqual(registry.dropped, [HASH.value, HASH.value])
  assert.equal(registry.entries.size, 0)
})

test('an offer whose stream is refused asks once more, as the file would stay one that is being written', async t => {
  const registry = stand(t)
  registry.refusals = 1
  await offer(HASH, BYTES, () => false)
  assert.equal(await (await find(HASH)).text(), 'a model')
  registry.refusals = 2
  await assert.rejects(offer(HASH, BYTES, () => false), { name: 'InvalidStateError' })
  assert.equal(registry.refusals, 0)
})

test('a load asks this site, then other sites, then the network, as `cache` allows', async t => {
  const registry = stand(t)
  const info = {}
  const none = []
  const outcome = async (options, answer) => {
    const way = transport(call => answer[call] ? refuse(answer[call]) : info)
    const asked = { integrity, ...options }
    const result = await load(way, URL, asked, {}, false, Promise.resolve()).catch(({ code }) => code)
    assert.ok(result === info || typeof result === 'string')
    const looked = registry.asked.splice(0).length
    return [...way.calls, ...(looked ? ['looked'] : none), ...(result === info ? none : [result])]
  }
  const absent = { 'address only': 'not-cached' }
  // It is there for this site.
  assert.deepEqual(await outcome({}, {}), ['address only'])
  // It is nowhere.
  assert.deepEqual(await outcome({}, absent), ['address only', 'address undefined', 'looked'])
  assert.deepEqual(await outcome({ cache: 'use' }, absent), ['address only', 'address use', 'looked'])
  assert.deepEqual(await outcome({ cache: 'off' }, absent), ['address off', 'looked'])
  assert.deepEqual(await outcome({ cache: 'only' }, absent), ['address only', 'looked', 'not-cached'])
  // Other sites have it.
  await registry.put(BYTES)
  for (const code of ['not-cached', 'storage', 'storage-full', 'integrity']) {
    assert.deepEqual(await outcome({}, { 'address only': code }), ['address only', 'file off', 'looked'])
  }
  assert.deepEqual(await outcome({ cache: 'off' }, absent), ['file off', 'looked'])
  assert.deepEqual(await outcome({ cache: 'only' }, absent), ['address only', 'file off', 'looked'])
  // It is not the one, or no model.
  for (const code of ['integrity', 'io']) {
    const bad = { ...absent, 'file off': code }
    assert.deepEqual(await outcome({}, bad), ['address only', 'file off', 'address undefined', 'looked'])
    assert.deepEqual(await outcome({ cache: 'only' }, bad), ['address only', 'file off', 'looked', 'not-cached'])
  }
  assert.deepEqual(await outcome({}, { ...absent, 'file off': 'bad-gguf' }), ['address only', 'file off', 'looked', 'bad-gguf'])
  // A failure that no other copy mends, and options that look nowhere else.
  assert.deepEqual(await outcome({}, { 'address only': 'bad-gguf' }), ['address only', 'bad-gguf'])
  for (const options of [{ cache: 'refresh' }, { cache: 'revalidate' }, { cache: 'sometimes' }, { integrity: 'sha256-AAAA' }, { integrity: 7 }]) {
    assert.deepEqual(await outcome(options, {}), [`address ${options.cache}`])
  }
})

test('an aborted load makes no further call', async t => {
  stand(t)
  const abort = new AbortController()
  const way = transport(() => {
    abort.abort(new Error('changed my mind'))
    return refuse('not-cached')
  })
  await assert.rejects(load(way, URL, { integrity }, { signal: abort.signal }, false, Promise.resolve()), /changed my mind/)
  assert.deepEqual(way.calls, ['address only'])
})

test('the reports of all calls are those of one load', async t => {
  const registry = stand(t)
  await registry.put(BYTES)
  const reports = []
  const cpu = { kind: 'cpu', why: 'x' }
  const way = transport((call, onItem) => {
    if (call === 'address only') return refuse('not-cached')
    onItem(progress('upload', call === 'file off' ? 0.5 : 0.2, [cpu]))
    return call === 'file off' ? refuse('io') : {}
  })
  let finish
  const stored = new Promise(resolve => { finish = resolve })
  const later = []
  way.onStoring = report => later.push(report)
  const onItem = report => reports.push(report)
  await load(way, URL, { integrity }, { onItem }, true, stored)
  const bad = { kind: 'not-shared', why: 'it is io' }
  assert.deepEqual(
    reports.map(({ phase, fraction, fromCache, notes }) => [phase, fraction, fromCache, notes.map(({ kind }) => kind)]),
    [
      ['cache', 0, true, []],
      ['cache', 0.5, true, ['shared', 'cpu']],
      ['upload', 0.5, false, ['not-shared', 'cpu']],
      ['upload', 0.5, false, ['not-shared', 'cpu']]
    ]
  )
  way.onStoring(progress('stored', 1, [cpu]))
  finish()
  // There is no IndexedDB here, so that there is nothing to offer.
  await new Promise(resolve => { setImmediate(resolve) })
  assert.deepEqual(later.map(({ phase, notes }) => [phase, notes.length]), [['stored', 2], ['stored', 3]])
  assert.deepEqual(later[1].notes[0], bad)
  assert.match(later[1].notes[1].why, /indexedDB/)
  assert.equal(reports.length, 4)
})

test('a note of a load that was not stored comes as those of storing do', async t => {
  stand(t)
  const way = transport((call, onItem) => onItem(progress('ready', 1)))
  const [reports, later] = [[], []]
  way.onStoring = report => later.push(report)
  await load(way, URL, { integrity, cache: 'off' }, { onItem: report => reports.push(report) }, true, Promise.resolve())
  await new Promise(resolve => { setImmediate(resolve) })
  assert.equal(reports.length, 1)
  assert.deepEqual(later.map(({ phase, notes }) => [phase, notes.map(({ kind }) => kind)]), [['ready', ['not-shared']]])
})

test('a model that has ended is not offered, and tells nothing more', async t => {
  const registry = stand(t)
  let ended
  const way = transport((call, onItem) => {
    if (call === 'address only') return refuse('not-cached')
    onItem(progress('download', 1))
    return {}
  })
  way.onEnd = why => { ended = why }
  const reports = []
  let finish
  const stored = new Promise(resolve => { finish = resolve })
  await load(way, URL, { integrity }, { onItem: report => reports.push(report) }, true, stored)
  way.onEnd('disposed')
  finish()
  await new Promise(resolve => { setImmediate(resolve) })
  assert.equal(ended, 'disposed')
  assert.equal(reports.length, 1)
  assert.deepEqual(registry.asked, ['read'])
})
