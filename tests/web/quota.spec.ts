// Room on the device: the browser is asked for it once, the model used longest ago makes room, and
// where there is none a load does without.
import type { Page } from '@playwright/test'
import { insertDisk, setDisk } from './disk'
import type { Disk } from './disk'
import {
  expect, expectRandomModel, heldHalfway, load, loadFailure, loadReporting, MIB, open, RANDOM_MODEL, scripted,
  sent, SIZE, storedModels, test
} from './harness'

test.use({ backend: 'cpu' })

/** In the page's own thread, where its disk is. */
const HERE = { worker: false }

/** Another model of the same size. */
const another = (page: Page) => scripted(page)

/** The note that one of them gave way. */
const evicted = (url: string) => ({ kind: 'evicted', url, bytes: SIZE })

const urls = async (page: Page) => (await storedModels(page)).map(({ url }) => url).sort()

test("a browser's own quota: a larger model is loaded without being stored, and the load says so", async ({ harness }) => {
  // Before anything is stored: the browser remembers for a while what was free.
  const session = await harness.context().newCDPSession(harness)
  await session.send('Storage.overrideQuotaForOrigin', { origin: new URL(harness.url()).origin, quotaSize: 2 * MIB })
  const { path, requests } = await scripted(harness)
  const { notes } = await loadReporting(harness, path)
  expect(notes).toEqual([{ kind: 'not-stored', why: expect.stringContaining('storage is full') }])
  await expectRandomModel(harness)
  expect(await storedModels(harness)).toEqual([])
  const found = await loadFailure(harness, path, { cache: 'only' })
  expect(found).toMatchObject({ code: 'storage-full', message: expect.stringContaining(String(SIZE)) })
  expect((await requests()).length).toBe(10)
})

const disks: Record<string, Partial<Disk>> = {
  'a disk that is full': {},
  'a disk whose estimate is true': { estimate: 'true' },
  'a disk that counts late what was deleted': { late: 2 },
  'a disk that counts late, and whose estimate is true': { estimate: 'true', late: 2 }
}
for (const [what, disk] of Object.entries(disks)) {
  test(`the model used longest ago gives way, only when it must, and is named: ${what}`, async ({ shared }) => {
    await insertDisk(shared)
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => another(shared)))
    await load(shared, HERE, a!.path)
    await load(shared, HERE, b!.path)
    // Used again: now the second is the one used longest ago.
    await load(shared, HERE, a!.path)
    await setDisk(shared, { ...disk, size: 3 * SIZE + 4 * MIB })
    expect((await loadReporting(shared, c!.path, HERE)).kinds).toEqual([])
    expect(await urls(shared)).toEqual([a!.url, b!.url, c!.url].sort())
    const d = await another(shared)
    const { notes } = await loadReporting(shared, d.path, HERE)
    expect(notes).toEqual([evicted(b!.url)])
    await expectRandomModel(shared)
    expect(await urls(shared)).toEqual([a!.url, c!.url, d.url].sort())
    await load(shared, { cache: 'only' }, d.path)
    // A model that would not fit in place of all of them leaves them alone.
    const large = await scripted(shared, { always: { size: 4 * SIZE } }, RANDOM_MODEL)
    expect((await loadReporting(shared, large.path, HERE)).kinds).toEqual(['not-stored'])
    const whole = (await storedModels(shared)).filter(({ complete }) => complete)
    expect(whole.map(({ url }) => url).sort()).toEqual([a!.url, c!.url, d.url].sort())
  })
}

for (const estimate of ['plenty', 'true'] as const) {
  test(`what is no model makes none give way, however long its server says that it is; the estimate is ${estimate}`, async ({ shared }) => {
    await insertDisk(shared)
    const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
    await load(shared, HERE, a!.path)
    await load(shared, HERE, b!.path)
    await setDisk(shared, { estimate, size: 2 * SIZE + MIB / 2 })
    const claimed = await scripted(shared, { always: { size: SIZE } }, '/package.json')
    expect((await loadFailure(shared, claimed.path, HERE)).code).toBe('bad-gguf')
    expect(await urls(shared)).toEqual([a!.url, b!.url].sort())
  })
}

/** A model whose header is longer than what may wait in memory for the disk. */
const LONG_MODEL = '/long.gguf'

test('none gives way before the header is here; what is stored by then is kept for the next load', async ({ shared }) => {
  await insertDisk(shared)
  const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await load(shared, HERE, b!.path)
  await setDisk(shared, { size: 2 * SIZE + 3 * MIB })
  const { path, url, rewrite } = await scripted(shared, heldHalfway(), LONG_MODEL)
  const message = await shared.evaluate(async ([path, bytes]) => {
    const abort = new AbortController()
    const { BitNet } = window.tritloom
    const stored = async () => (await BitNet.cache.list()).find(({ url }) => url.endsWith(path))?.bytes
    let loaded = 0
    const loading = BitNet.load(path, { worker: false, signal: abort.signal, onProgress: progress => { loaded = progress.loaded } })
      .then(() => 'loaded', (error: Error) => error.message)
    while (await stored() !== 3 * bytes || loaded < 5 * bytes) await new Promise(resolve => setTimeout(resolve, 20))
    abort.abort(new Error('enough'))
    return loading
  }, [path, MIB] as const)
  expect(message).toBe('enough')
  expect(await urls(shared)).toEqual([a!.url, b!.url, url].sort())
  await rewrite({})
  const { notes } = await loadReporting(shared, path, HERE)
  expect(notes).toEqual([{ kind: 'resumed', bytes: 3 * MIB }, ...[a, b].map(model => evicted(model!.url))])
  await load(shared, { cache: 'only', ...HERE }, path)
  await expectRandomModel(shared)
  expect(await urls(shared)).toEqual([url])
})

test('a model in use does not give way: in the worker of another tab, or in this page', async ({ shared, browser }) => {
  await insertDisk(shared)
  const [a, b, c, d, e] = await Promise.all([1, 2, 3, 4, 5].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await setDisk(shared, { size: SIZE + MIB })
  const other = await open(browser, shared.context(), 'cpu')
  await load(other.page, { cache: 'only' }, a!.path)
  expect((await loadReporting(shared, b!.path, HERE)).kinds).toEqual(['not-stored'])
  expect(await urls(shared)).toEqual([a!.url])
  // The tab need not let go of it.
  await other.close()
  const found = await loadReporting(shared, c!.path, HERE)
  expect(found.notes).toEqual([evicted(a!.url)])

  await shared.evaluate(async path => {
    const used = await window.tritloom.BitNet.load(path, { worker: false, cache: 'only' })
    Object.assign(window, { used })
  }, c!.path)
  expect((await loadReporting(shared, d!.path, HERE)).kinds).toEqual(['not-stored'])
  expect(await urls(shared)).toEqual([c!.url])
  await shared.evaluate(() => (window as unknown as { used: import('../../pkg/index.js').BitNet }).used.dispose())
  const { notes } = await loadReporting(shared, e!.path, HERE)
  expect(notes).toEqual([evicted(c!.url)])
  expect(await urls(shared)).toEqual([e!.url])
})

for (const estimate of ['plenty', 'true'] as const) {
  test(`an old version gives way to the new one if nothing uses it; the estimate is ${estimate}`, async ({ shared }) => {
    await insertDisk(shared)
    const [old, other] = await Promise.all([{ always: { etag: '"old"' } }, {}].map(script => scripted(shared, script)))
    const { path, url, rewrite } = old!
    await load(shared, HERE, path)
    await setDisk(shared, { estimate, size: 2 * SIZE + MIB })
    await load(shared, HERE, other!.path)
    await rewrite({ always: { etag: '"new"' } })
    const versions = async () => (await storedModels(shared)).map(({ url, etag, complete }) => [url, etag, complete])
    // Of other models there is enough.
    expect((await loadReporting(shared, path, { ...HERE, cache: 'revalidate' })).notes).toEqual([evicted(other!.url)])
    expect(await versions()).toEqual([[url, '"new"', true]])

    await setDisk(shared, { size: SIZE + MIB })
    await rewrite({ always: { etag: '"newer"' } })
    await shared.evaluate(async path => {
      const used = await window.tritloom.BitNet.load(path, { worker: false, cache: 'only' })
      Object.assign(window, { used })
    }, path)
    expect((await loadReporting(shared, path, { ...HERE, cache: 'refresh' })).kinds).toEqual(['not-stored'])
    expect(await versions()).toEqual([[url, '"new"', true]])
    await shared.evaluate(() => (window as unknown as { used: import('../../pkg/index.js').BitNet }).used.dispose())
    expect((await loadReporting(shared, path, { ...HERE, cache: 'refresh' })).notes).toEqual([])
    expect(await versions()).toEqual([[url, '"newer"', true]])
    await load(shared, { cache: 'only', ...HERE }, path)
    await expectRandomModel(shared)
  })
}

test('without the browser\'s locks, models give way all the same', async ({ shared }) => {
  await shared.evaluate(() => { Object.defineProperty(navigator, 'locks', { configurable: true, value: undefined }) })
  await insertDisk(shared)
  const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await setDisk(shared, { size: SIZE + MIB })
  expect((await loadReporting(shared, b!.path, HERE)).kinds).toEqual(['evicted'])
  expect(await urls(shared)).toEqual([b!.url])
})

test('a load that looks for room waits for one of another tab that looks', async ({ shared }) => {
  await insertDisk(shared)
  const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await setDisk(shared, { size: SIZE + MIB })
  // The other tab has the locks of all models that it could delete.
  const names = ['room', `use ${a!.url}`, `load ${a!.url}`].map(name => `tritloom-${name}`)
  await shared.evaluate(async names => {
    await window.model.dispose()
    await Promise.all(names.map(name => new Promise<void>(held => {
      void navigator.locks.request(name, () => new Promise<void>(release => {
        addEventListener('looked', () => release(), { once: true })
        held()
      }))
    })))
  }, names)
  const loading = loadReporting(shared, b!.path, HERE)
  await shared.waitForFunction(async name => (await navigator.locks.query()).pending!.some(lock => lock.name === name), names[0])
  await shared.evaluate(() => { dispatchEvent(new Event('looked')) })
  expect((await loading).notes).toEqual([evicted(a!.url)])
})

test('a load that looks for room never has the right to download a model in use', async ({ shared }) => {
  await insertDisk(shared)
  const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await setDisk(shared, { size: SIZE + MIB })
  // A tab that has begun to load it finds that right free.
  const isTaken = await shared.evaluate(async ([a, b, name]) => {
    const used = await window.tritloom.BitNet.load(a, { worker: false, cache: 'only' })
    const names: string[] = []
    const { request } = LockManager.prototype
    navigator.locks.request = function (name: string, ...rest: unknown[]) {
      names.push(name)
      return request.call(navigator.locks, name, ...rest as [LockOptions, () => void])
    } as typeof request
    await window.load(b, { worker: false })
    delete (navigator.locks as Partial<LockManager>).request
    await used.dispose()
    return names.includes(name)
  }, [a!.path, b!.path, `tritloom-load ${a!.url}`] as const)
  expect(isTaken).toBe(false)
  expect(await urls(shared)).toEqual([a!.url])
})

test('a model in several files makes none give way if not all of them would fit', async ({ shared }) => {
  await insertDisk(shared)
  const a = await another(shared)
  await load(shared, HERE, a.path)
  await setDisk(shared, { size: SIZE + MIB })
  const volumes = await scripted(shared, { always: { size: 8 * MIB } }, '/volumes/spread-00001-of-00003.gguf')
  expect((await loadReporting(shared, volumes.path, HERE)).kinds).toEqual(['not-stored'])
  await expectRandomModel(shared)
  expect((await storedModels(shared)).filter(({ complete }) => complete).map(({ url }) => url)).toEqual([a.url])
})

/** In the page's own thread, whose files have room for five MiB, and for as many bytes more as each that is deleted has. */
const fillFiles = (page: Page) => page.evaluate(size => {
  const { removeEntry } = FileSystemDirectoryHandle.prototype
  FileSystemDirectoryHandle.prototype.removeEntry = async function (name) {
    await removeEntry.call(this, name)
    room.postMessage(size)
  }
  const room = new BroadcastChannel('room')
  const script = `import '${location.origin}/tests/web/full-disk.mjs'; import '${location.origin}/pkg/threads/disk-worker.js'`
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))
  window.Worker = class extends Worker {
    constructor(_: string | URL, options?: WorkerOptions) {
      super(url, options)
    }
  }
}, SIZE)

test('files fill the disk in the middle: another model gives way, or the load does without and leaves nothing behind', async ({ shared }) => {
  const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await fillFiles(shared)
  const { notes } = await loadReporting(shared, b!.path, HERE)
  expect(notes).toEqual([evicted(a!.url)])
  await expectRandomModel(shared)
  await load(shared, { cache: 'only', ...HERE }, b!.path)
  // A model for which all others would not do.
  const large = await scripted(shared, { always: { size: 4 * SIZE } })
  const found = await loadReporting(shared, large.path, HERE)
  expect(found.notes).toEqual([{ kind: 'not-stored', why: expect.stringContaining('full') }])
  await expectRandomModel(shared)
  expect(await urls(shared)).toEqual([b!.url])
  expect((await loadFailure(shared, large.path, { cache: 'only', ...HERE })).code).toBe('storage-full')
  const files = await shared.evaluate(async () => {
    const names: string[] = []
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('tritloom')
    for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) names.push(name)
    return names.length
  })
  expect(files).toBe(1)
})

test('a header longer than what may wait in memory comes through although files fill the disk', async ({ shared }) => {
  const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await load(shared, HERE, b!.path)
  await fillFiles(shared)
  const { path, url } = await scripted(shared, {}, LONG_MODEL)
  const { notes } = await loadReporting(shared, path, HERE)
  expect(notes).toEqual([a, b].map(model => evicted(model!.url)))
  expect(await urls(shared)).toEqual([url])
  await load(shared, { cache: 'only', ...HERE }, path)
  await expectRandomModel(shared)
})

test('when a model gave way and there is still no room, no other follows it', async ({ shared }) => {
  await insertDisk(shared)
  const [a, b] = await Promise.all([1, 2].map(() => another(shared)))
  await load(shared, HERE, a!.path)
  await load(shared, HERE, b!.path)
  await setDisk(shared, { size: 2 * SIZE + 4 * MIB, late: Infinity })
  const { path } = await another(shared)
  const { kinds } = await loadReporting(shared, path, HERE)
  expect(kinds).toEqual(['evicted', 'not-stored'])
  await expectRandomModel(shared)
  expect(await urls(shared)).toEqual([b!.url])
})

for (const fails of ['at once', 'at the end'] as const) {
  test(`a disk that is full in the middle, ${fails}: the load goes on, says so, and leaves nothing behind`, async ({ shared }) => {
    await insertDisk(shared)
    await setDisk(shared, { size: 5 * MIB, fails })
    const { path, requests } = await scripted(shared)
    const { notes } = await loadReporting(shared, path, HERE)
    expect(notes).toEqual([{ kind: 'not-stored', why: expect.stringContaining('full') }])
    await expectRandomModel(shared)
    expect(sent(await requests())).toBe(SIZE)
    expect(await storedModels(shared)).toEqual([])
    expect((await loadFailure(shared, path, { cache: 'only' })).code).toBe('storage-full')
    // When there is room, it is stored as ever.
    await setDisk(shared, { size: 2 * SIZE })
    expect((await loadReporting(shared, path, HERE)).kinds).toEqual([])
    await load(shared, { cache: 'only' }, path)
  })
}

test('a disk too full for a record: a stored model is loaded all the same', async ({ shared }) => {
  await insertDisk(shared)
  const { path, rewrite, requests } = await scripted(shared)
  await load(shared, HERE, path)
  await rewrite({})
  for (const fails of ['at once', 'at the end'] as const) {
    await setDisk(shared, { refusesRecords: true, fails })
    expect((await loadReporting(shared, path, HERE)).notes).toEqual([])
    await expectRandomModel(shared)
    await load(shared, { cache: 'only', ...HERE }, path)
  }
  expect(await requests()).toEqual([])
})

test('a disk too full for the rest: what is stored is read, and kept', async ({ shared }) => {
  await insertDisk(shared)
  const { path, rewrite, requests } = await scripted(shared, {
    then: Array(6).fill({ status: 0 }), always: { status: 503, headers: { 'retry-after': '86400' } }
  })
  expect((await loadFailure(shared, path, HERE)).code).toBe('http')
  const { bytes } = (await storedModels(shared))[0]!
  expect(bytes).toBeGreaterThan(2 * MIB)
  await setDisk(shared, { size: bytes + 2 * MIB })
  await rewrite({})
  const { kinds } = await loadReporting(shared, path, HERE)
  expect(kinds).toEqual(['resumed', 'not-stored'])
  await expectRandomModel(shared)
  expect(sent(await requests())).toBe(SIZE - bytes)
  // Two parts fit. The file's last one, which is shorter, may come before others.
  const [kept] = await storedModels(shared)
  expect(kept!.complete).toBe(false)
  expect(kept!.bytes).toBeGreaterThan(bytes + MIB)
  expect(kept!.bytes).toBeLessThanOrEqual(bytes + 2 * MIB)
})

test('a browser that blocks IndexedDB loads models all the same', async ({ harness }) => {
  for (const block of ['throws', 'is missing'] as const) {
    await harness.evaluate(block => {
      Object.defineProperty(globalThis, 'indexedDB', {
        configurable: true,
        value: block === 'throws' ? { open() { throw new DOMException('blocked', 'SecurityError') } } : undefined
      })
    }, block)
    const { path } = await scripted(harness)
    const { kinds } = await loadReporting(harness, path, HERE)
    expect(kinds).toEqual(['not-stored'])
    await expectRandomModel(harness)
    expect((await loadFailure(harness, path, { cache: 'only', ...HERE })).code).toBe('not-cached')
  }
})

test('the browser is asked once not to delete models on its own', async ({ harness }) => {
  await harness.addInitScript(() => {
    const { persist } = StorageManager.prototype
    StorageManager.prototype.persist = function () {
      sessionStorage.setItem('asked', String(Number(sessionStorage.getItem('asked')) + 1))
      return persist.call(this)
    }
    StorageManager.prototype.persisted = async () => false
  })
  const asked = () => harness.evaluate(() => Number(sessionStorage.getItem('asked')))
  // Each page keeps its devices, so that its loads compile the kernels once.
  const visit = async () => {
    await harness.goto('/tests/web/harness.html?shared')
    await harness.waitForFunction(() => window.tritloom)
  }
  await visit()
  await load(harness, { cache: 'off' }, RANDOM_MODEL)
  expect(await asked()).toBe(0)
  // Nor is a model stored that comes from an address of the page's own.
  await load(harness, {}, await harness.evaluate(async url => URL.createObjectURL(await (await fetch(url)).blob()), RANDOM_MODEL))
  expect(await asked()).toBe(0)
  await load(harness, {}, RANDOM_MODEL)
  await expect.poll(asked).toBe(1)
  await load(harness, { cache: 'refresh' }, RANDOM_MODEL)
  await visit()
  await load(harness, {}, RANDOM_MODEL)
  expect(await asked()).toBe(1)
  expect(typeof await harness.evaluate(() => window.tritloom.BitNet.cache.persist())).toBe('boolean')
})
