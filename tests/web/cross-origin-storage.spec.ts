// A model's file that several sites share, in a stand-in for Cross-Origin Storage.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  expect, expectNeverBack, expectRandomModel, failure, load, loadFailure, loadReporting, RANDOM_MODEL, scripted, storedModels, test
} from './harness'
import type { InPage } from './harness'
import type { Registry } from './cross-origin-storage.mjs'
import type { LoadOptions } from '../../pkg/index.js'

declare global {
  interface Window {
    registry: Registry
  }
}

test.use({ backend: 'cpu' })

const hash = createHash('sha256').update(readFileSync(`.${RANDOM_MODEL}`))
const digits = hash.copy().digest('hex')
const integrity = `sha256-${hash.digest('base64')}`

/** With `strict` too, the failures of this storage are none of the load. */
const STRICT: LoadOptions = { strict: true, context: 64, template: 'builtin' }

type Form = 'getFileHandle' | 'requestFileHandle' | 'requestFileHandles'

/** Gives the page the storage, with the model that another site has put there if it is `there`. */
const begin = (page: InPage, isThere: boolean, form: Form = 'requestFileHandle') =>
  page.evaluate(async ([url, isThere, form]) => {
    const stand: string = '/tests/web/cross-origin-storage.mjs'
    const { Registry } = await import(stand) as typeof import('./cross-origin-storage.mjs')
    window.registry = new Registry()
    Object.defineProperty(navigator, 'crossOriginStorage', { value: window.registry.of(location.origin, form), configurable: true })
    if (isThere) await window.registry.put(await (await fetch(url)).blob())
  }, [RANDOM_MODEL, isThere, form] as const)

const asked = (page: InPage) => page.evaluate(() => window.registry.asked.splice(0))

/** The entry of the model in the storage. */
const entry = (page: InPage) => page.evaluate(async digits => {
  const found = window.registry.entries.get(digits)
  return found && { size: found.bytes?.size, isGlobal: found.isGlobal, writers: found.writers }
}, digits)

/** The notes of a load, once there is one of a kind. */
const untilNoted = (page: InPage, kind: string) =>
  expect.poll(() => page.evaluate(() => window.progress?.notes.map(({ kind }) => kind))).toContain(kind)

/** A path of its own for the model, and the number of its requests. */
const fresh = async (page: InPage) => {
  const { path, requests } = await scripted(page, {}, RANDOM_MODEL)
  return { path, count: async () => (await requests()).length }
}

test.describe('a file that another site has put there', () => {
  for (const [name, options, form] of [
    ['in a worker', {}, 'requestFileHandle'],
    ['in this thread', { worker: false }, 'getFileHandle'],
    ['without storage of its own', { cache: 'off' }, 'requestFileHandles'],
    ['without the network', { cache: 'only', crossOriginStorage: 'offer' }, 'requestFileHandle']
  ] satisfies [string, LoadOptions, Form][]) {
    test(`is loaded and not stored again, ${name}`, async ({ shared }) => {
      await begin(shared, true, form)
      const { path, count } = await fresh(shared)
      for (let n = 0; n < 2; n++) {
        const { kinds, reports } = await loadReporting(shared, path, { ...options, integrity })
        await expectRandomModel(shared)
        expect(kinds).toEqual(['shared'])
        expect(reports.filter(({ fromCache }) => !fromCache)).toEqual([])
        expect(new Set(reports.map(({ phase }) => phase))).toEqual(new Set(['cache', 'compile', 'ready']))
        expectNeverBack(reports)
      }
      expect(await count()).toBe(0)
      expect(await storedModels(shared)).toEqual([])
      expect(await asked(shared)).toEqual(['read', 'read'])
    })
  }

  test('is not looked for where it is not wanted, or the model is stored for this site', async ({ shared }) => {
    await begin(shared, true)
    const { path, count } = await fresh(shared)
    await load(shared, { integrity, crossOriginStorage: 'off' }, path)
    for (const options of [{ integrity }, {}, { cache: 'off' }] satisfies LoadOptions[]) await load(shared, options, path)
    for (const cache of ['revalidate', 'refresh'] as const) await load(shared, { integrity, cache }, path)
    expect(await asked(shared)).toEqual([])
    expect(await count()).toBeGreaterThan(3)
    expect((await loadFailure(shared, path, { integrity: 'sha256-AAAA' })).code).toBe('bad-option')
  })
})

test.describe('the file comes from the network', () => {
  const reasons: Record<string, [why: RegExp | undefined, options: LoadOptions, change: () => unknown]> = {
    'if it is not there': [undefined, {}, () => {}],
    'if its presence is not disclosed': [undefined, { cache: 'off' }, async () => {
      await window.registry.put(new Blob(['x']), location.hash.slice(1))
      window.registry.publicHashes.clear()
    }],
    'if the visitor refuses': [/^NotAllowedError: the visitor/, STRICT, () => { window.registry.onRead = 'refuse' }],
    'if another site is writing it': [/^NotAllowedError: it is being written/, {}, () => {
      window.registry.entries.set(location.hash.slice(1), { writers: 1, storers: new Set(), isGlobal: false })
    }],
    'if it is not the file': [/sha256-/, { worker: false }, () => window.registry.put(new Blob(['other bytes']), location.hash.slice(1))],
    'if it is empty': [/sha256-/, {}, () => window.registry.put(new Blob([]), location.hash.slice(1))],
    'if it cannot be read': [/could not read|unreadable|read/i, {}, async () => {
      await window.registry.put(new Blob(['x']), location.hash.slice(1))
      const folder = await navigator.storage.getDirectory()
      const handle = await folder.getFileHandle('gone', { create: true })
      const stream = await handle.createWritable()
      await stream.write('some bytes')
      await stream.close()
      const file = await handle.getFile()
      await folder.removeEntry('gone')
      window.registry.onFile = () => file
    }],
    'if the storage is something else': [/TypeError/, {}, () => {
      Object.defineProperty(navigator, 'crossOriginStorage', { value: {}, configurable: true })
    }]
  }
  for (const [name, [why, options, change]] of Object.entries(reasons)) {
    test(name, async ({ shared }) => {
      await begin(shared, false)
      await shared.evaluate(digits => { location.hash = digits }, digits)
      await shared.evaluate(change)
      const { path, count } = await fresh(shared)
      const { notes, reports } = await loadReporting(shared, path, { ...options, integrity })
      await expectRandomModel(shared)
      expect(notes).toEqual(why ? [{ kind: 'not-shared', why: expect.stringMatching(why) }] : [])
      expect(await count()).toBeGreaterThan(0)
      expect((await storedModels(shared)).length).toBe(options.cache === 'off' ? 0 : 1)
      expectNeverBack(reports)
      expect(reports.at(-1)!.fromCache).toBe(false)
    })
  }

  test('and with `only` the load rejects as without this storage', async ({ shared }) => {
    await begin(shared, false)
    const { path, count } = await fresh(shared)
    expect((await loadFailure(shared, path, { integrity, cache: 'only' })).code).toBe('not-cached')
    expect(await count()).toBe(0)
    expect(await asked(shared)).toEqual(['read'])
  })

  test('if the script that looks there cannot be fetched', async ({ harness }) => {
    await harness.route('**/shared/load.js', route => route.abort())
    await begin(harness, true)
    const { path, count } = await fresh(harness)
    await load(harness, { integrity }, path)
    await expectRandomModel(harness)
    expect(await count()).toBeGreaterThan(0)
  })
})

test('a load that waits for an answer is aborted at once, with its reason', async ({ shared }) => {
  await begin(shared, false)
  const { path, count } = await fresh(shared)
  const waited = await shared.evaluate(async ([path, integrity]) => {
    window.registry.onRead = 'silent'
    const abort = new AbortController()
    const loading = window.tritloom.BitNet.load(path, { integrity, backend: 'cpu', signal: abort.signal }).catch(error => error)
    while (window.registry.asked.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    const since = performance.now()
    const reason = new Error('changed my mind')
    abort.abort(reason)
    const isReason = await loading === reason
    return isReason ? performance.now() - since : 'another reason'
  }, [path, integrity] as const)
  // Its patience is five seconds.
  expect(waited).toBeLessThan(2500)
  expect(await count()).toBe(0)
})

test.describe('an offer', () => {
  const offering: LoadOptions = { integrity, crossOriginStorage: 'offer' }

  test('has a downloaded file, once it is stored, and other sites load it', async ({ shared }) => {
    await begin(shared, false)
    const { path } = await fresh(shared)
    const { notes } = await loadReporting(shared, path, { integrity })
    expect(notes).toEqual([])
    expect(await asked(shared)).toEqual(['read'])
    // Again, and now it is offered; a second offer is as good as the first.
    for (const options of [{ cache: 'refresh' }, { cache: 'refresh', worker: false }] satisfies LoadOptions[]) {
      await loadReporting(shared, path, { ...offering, ...options })
      await untilNoted(shared, 'offered')
      expect(await entry(shared)).toEqual({ size: 555_936, isGlobal: true, writers: 0 })
      expect(await asked(shared)).toEqual(['write'])
    }
    // From this site's storage there is nothing to offer.
    await loadReporting(shared, path, offering)
    expect(await asked(shared)).toEqual([])
    const other = await shared.evaluate(async digits => {
      const { registry } = window
      const read = () => registry.of('https://third.example').requestFileHandle!({ algorithm: 'SHA-256', value: digits })
      const hidden = await read().catch(({ name }) => name)
      registry.publicHashes.add(digits)
      return { hidden, size: (await (await read()).getFile()).size }
    }, digits)
    expect(other).toEqual({ hidden: 'NotFoundError', size: 555_936 })
  })

  test('in the oldest form is for all sites too, and of a file in IndexedDB as well', async ({ shared }) => {
    await begin(shared, false, 'requestFileHandles')
    await shared.evaluate(() => {
      StorageManager.prototype.getDirectory = async () => { throw new DOMException('no files here', 'SecurityError') }
    })
    await loadReporting(shared, (await fresh(shared)).path, { ...offering, worker: false })
    await untilNoted(shared, 'offered')
    expect(await entry(shared)).toEqual({ size: 555_936, isGlobal: true, writers: 0 })
  })

  test('that fails is a note, and leaves nothing behind', async ({ shared }) => {
    await begin(shared, false)
    const { path } = await fresh(shared)
    const offered = async (options: LoadOptions = {}) => {
      await loadReporting(shared, path, { ...offering, cache: 'refresh', ...STRICT, ...options })
      await untilNoted(shared, 'not-shared')
      expect(await entry(shared)).toBeUndefined()
      return shared.evaluate(() => window.progress!.notes.at(-1))
    }
    const note = (why: RegExp) => ({ kind: 'not-shared', why: expect.stringMatching(why) })
    expect(await offered({ cache: 'off' })).toEqual(note(/not stored on this device/))
    await shared.evaluate(() => { window.registry.failure = 'QuotaExceededError' })
    expect(await offered()).toEqual(note(/^QuotaExceededError/))
    expect(await shared.evaluate(() => window.registry.dropped)).toEqual([digits])
    await shared.evaluate(() => { window.registry.onWrite = 'refuse' })
    expect(await offered()).toEqual(note(/^NotAllowedError/))
  })

  test('that gets no answer holds up neither the load nor what is stored', async ({ shared }) => {
    await begin(shared, false)
    await shared.evaluate(() => { window.registry.onWrite = 'silent' })
    const { path } = await fresh(shared)
    await loadReporting(shared, path, offering)
    await shared.evaluate(() => window.model.stored)
    await expectRandomModel(shared)
    await expect.poll(() => asked(shared)).toContain('write')
  })

  test('of a model that is disposed of meanwhile ends, and is no file', async ({ shared }) => {
    await begin(shared, false)
    const { path } = await fresh(shared)
    await shared.evaluate(() => {
      const { registry } = window
      registry.held = new Promise<void>(resolve => { registry.release = resolve })
    })
    await loadReporting(shared, path, offering)
    await expect.poll(() => asked(shared)).toContain('write')
    await shared.evaluate(async () => {
      await window.model.dispose()
      window.registry.release()
    })
    await expect.poll(() => shared.evaluate(() => window.registry.dropped)).toEqual([digits])
    expect(await entry(shared)).toBeUndefined()
    expect(await shared.evaluate(() => window.progress!.notes)).toEqual([])
  })
})

test('a bad value is refused, with this storage and without it', async ({ shared }) => {
  const call = `await load('${RANDOM_MODEL}', { integrity: '${integrity}', crossOriginStorage: 'all' })`
  expect((await failure(shared, call)).code).toBe('bad-option')
  await begin(shared, true)
  expect((await failure(shared, call)).code).toBe('bad-option')
  expect(await asked(shared)).toEqual([])
})
