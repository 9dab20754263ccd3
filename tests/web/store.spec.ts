// Files on the device: found damaged, found lost, found written by another release.
import { createHash } from 'node:crypto'
import type { Page } from '@playwright/test'
import {
  expect, expectNeverBack, expectRandomModel, load, failure, loadFailure, loadReporting, MIB, open,
  scripted, sent, SIZE, SPREAD_MODEL, storedModels, test
} from './harness'
import { spreadModel } from './models.mjs'

test.use({ backend: 'cpu' })

declare global {
  interface Window {
    /** The threads of the disk: see `changeDisk`. */
    threads: Worker[]
    /** The most bytes that these were asked to read and had not answered. */
    mostRead: number
  }
}

/** Does some work on the database itself: `work` gets it, and a function that awaits a request. */
const inDatabase = (page: Page, work: string) =>
  page.evaluate(work => new Promise((resolve, reject) => {
    const opening = indexedDB.open('tritloom')
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = async () => {
      const database = opening.result
      const done = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
      })
      try {
        resolve(await new Function('database', 'done', `return (async () => { ${work} })()`)(database, done))
      } catch (error) {
        reject(error)
      } finally {
        database.close()
      }
    }
  }), work)

interface StoredPart { start: number, length: number, sha256: string }

interface StoredFile { id: string, total: number, version: { etag: string }, finalUrl: string, stored: StoredPart[] }

/** The records of all stored files. */
const records = (page: Page) =>
  inDatabase(page, `return done(database.transaction('files').objectStore('files').getAll())`) as Promise<StoredFile[]>

/** The names of the files with the bytes. */
const filesOnDisk = (page: Page) => page.evaluate(async () => {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('tritloom', { create: true })
  const names: string[] = []
  for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) names.push(name)
  return names
})

/** Changes a byte of the stored part that is number `index` in the file. */
const flip = async (page: Page, index: number) => {
  const [{ id, stored }] = await records(page) as [StoredFile]
  const part = stored[index]!
  await page.evaluate(async ([id, at]) => {
    const file = await (await (await navigator.storage.getDirectory()).getDirectoryHandle('tritloom')).getFileHandle(id)
    const byte = new Uint8Array(await (await file.getFile()).slice(at, at + 1).arrayBuffer())
    const writable = await file.createWritable({ keepExistingData: true })
    await writable.write({ type: 'write', position: at, data: Uint8Array.of(byte[0]! ^ 1) })
    await writable.close()
  }, [id, part.start + 12345] as const)
  return part
}

/** From now on a page's own thread stores and finds all bytes in IndexedDB. */
const withoutFiles = (page: Page) => page.evaluate(() => {
  StorageManager.prototype.getDirectory = async () => { throw new DOMException('no files here', 'SecurityError') }
})

const verify = (page: Page, path: string) => page.evaluate(path => window.tritloom.BitNet.cache.verify(path), path)

const integrityOf = (bytes: Uint8Array) => `sha256-${createHash('sha256').update(bytes).digest('base64')}`

test('stored parts are small, hashed, and add up to the file', async ({ shared }) => {
  const { path } = await scripted(shared)
  await load(shared, {}, path)
  const [file] = await records(shared)
  expect(file).toMatchObject({ total: SIZE, complete: true, version: { etag: `"${SIZE}"` }, finalUrl: expect.stringContaining(path) })
  const bytes = spreadModel()
  let end = 0
  for (const { start, length, sha256 } of file!.stored) {
    expect(start).toBe(end)
    expect(length).toBeLessThanOrEqual(16 * MIB)
    expect(`sha256-${sha256}`).toBe(integrityOf(bytes.subarray(start, start + length)))
    end = start + length
  }
  expect(end).toBe(SIZE)
})

test('`missing` says how many bytes a load would download', async ({ shared }) => {
  const { path } = await scripted(shared)
  const missing = () => shared.evaluate(path => window.tritloom.BitNet.cache.missing(path), path)
  expect(await missing()).toBe(SIZE)
  await load(shared, {}, path)
  expect(await missing()).toBe(0)
  const reason = await shared.evaluate(path =>
    window.tritloom.BitNet.cache.verify(path, { signal: AbortSignal.abort('enough') }).catch(reason => reason), path)
  expect(reason).toBe('enough')
  const { length } = await flip(shared, 4)
  await verify(shared, path)
  expect(await missing()).toBe(length)
})

test('`verify` that is aborted while it reads ends its threads, which hold no file', async ({ shared }) => {
  const { path } = await scripted(shared)
  await load(shared, {}, path)
  const found = await shared.evaluate(async path => {
    const { cache } = window.tritloom.BitNet
    const abort = new AbortController()
    let [made, ended, reads] = [0, 0, 0]
    window.Worker = class extends Worker {
      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options)
        made += 1
      }
      override postMessage(message: { kind: string }, transfer?: unknown) {
        super.postMessage(message, transfer as Transferable[])
        if (message.kind === 'read' && ++reads === 3) abort.abort('enough')
      }
      override terminate() {
        super.terminate()
        ended += 1
      }
    }
    const reason = await cache.verify(path, { signal: abort.signal }).catch(reason => reason)
    while (ended < made) await new Promise(resolve => setTimeout(resolve, 10))
    // A file that a thread has open cannot be deleted.
    await cache.delete(path)
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('tritloom')
    const files: string[] = []
    for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) files.push(name)
    return { reason, isThreaded: made > 0, files }
  }, path)
  expect(found).toEqual({ reason: 'enough', isThreaded: true, files: [] })
})

test('`verify` of a model that is deleted while it reads is `not-cached`', async ({ shared }) => {
  const { path } = await scripted(shared)
  await load(shared, {}, path)
  const code = await shared.evaluate(async path => {
    const { cache } = window.tritloom.BitNet
    let deleted: Promise<void> | undefined
    window.Worker = class extends Worker {
      override postMessage(message: { kind: string }, transfer?: unknown) {
        const post = () => super.postMessage(message, transfer as Transferable[])
        if (message.kind === 'read') (deleted ??= cache.delete(path)).then(post)
        else post()
      }
    }
    return cache.verify(path).catch(error => error.code)
  }, path)
  expect(code).toBe('not-cached')
})

test('a flipped byte: `verify` finds it, and only its part is fetched again', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared)
  expect((await failure(shared, `await BitNet.cache.verify('${path}')`)).code).toBe('not-cached')
  await load(shared, {}, path)
  expect(await verify(shared, path)).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
  const { length, start } = await flip(shared, 4)
  await rewrite({})
  expect(await verify(shared, path)).toEqual({ whole: false, bytes: SIZE - length, damagedBytes: length })
  expect(await storedModels(shared)).toMatchObject([{ complete: false, bytes: SIZE - length }])
  const { notes } = await loadReporting(shared, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: SIZE - length }])
  expect(await requests()).toMatchObject([{ range: `bytes=${start}-${start + length - 1}`, sent: length }])
  await expectRandomModel(shared)
  expect(await verify(shared, path)).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
})

test('a flipped byte is found by a load as well, which mends it', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared)
  await load(shared, {}, path)
  const { length } = await flip(shared, 6)
  await rewrite({})
  const { kinds, reports } = await loadReporting(shared, path)
  expect(kinds).toEqual(['restarted', 'resumed'])
  expectNeverBack(reports)
  expect((await requests()).map(({ sent }) => sent)).toEqual([length])
  await expectRandomModel(shared)
  await flip(shared, 6)
  expect((await loadFailure(shared, path, { cache: 'only' })).code).toBe('not-cached')
})

test('many flipped bytes are mended in one load, and no other parts are fetched', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared)
  await load(shared, {}, path)
  let damaged = 0
  for (const index of [0, 2, 3, 5, 6, 8]) damaged += (await flip(shared, index)).length
  await rewrite({})
  const { kinds } = await loadReporting(shared, path)
  expect(kinds).toEqual(['restarted', 'resumed'])
  expect(sent(await requests())).toBe(damaged)
  await expectRandomModel(shared)
  expect(await verify(shared, path)).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
})

test('a flipped byte behind the last tensor, found only by `integrity`, is mended as well', async ({ shared }) => {
  const size = 12 * MIB
  const { path, rewrite, requests } = await scripted(shared, { always: { size } })
  await load(shared, {}, path)
  const integrity = integrityOf(Buffer.concat([spreadModel()], size))
  await flip(shared, 11)
  const only = () => loadFailure(shared, path, { integrity, cache: 'only' })
  expect((await only()).code).toBe('not-cached')
  await load(shared, {}, path)
  const { length } = await flip(shared, 11)
  await rewrite({ always: { size } })
  const { kinds } = await loadReporting(shared, path, { integrity })
  expect(kinds).toEqual(['restarted', 'resumed'])
  expect((await requests()).map(({ sent }) => sent)).toEqual([length])
  expect((await only()).code).toBe('none')
})

/**
 * How the database fails in the page's own thread once a model is stored, and the notes that the
 * page then gets.
 */
const failing: Record<string, { fail: () => void, kinds: string[], maxSent: number }> = {
  'one part cannot be read': {
    fail: () => {
      const get = IDBObjectStore.prototype.get
      IDBObjectStore.prototype.get = function (key) {
        if (Array.isArray(key) && key[1] === 3) throw new DOMException('lost', 'UnknownError')
        return get.call(this, key)
      }
    },
    kinds: ['restarted', 'resumed'],
    maxSent: MIB
  },
  'one part can be neither read nor deleted': {
    fail: () => {
      const { get, delete: remove } = IDBObjectStore.prototype
      let id: unknown
      IDBObjectStore.prototype.get = function (key) {
        if (!Array.isArray(key)) return get.call(this, key)
        id ??= key[0]
        if (key[0] === id && key[1] === 3) throw new DOMException('lost', 'UnknownError')
        return get.call(this, key)
      }
      IDBObjectStore.prototype.delete = function (key) {
        if (Array.isArray(key)) throw new DOMException('lost', 'UnknownError')
        return remove.call(this, key)
      }
    },
    kinds: ['restarted'],
    maxSent: SIZE
  },
  'the connection is closed in the middle': {
    fail: () => {
      const get = IDBObjectStore.prototype.get
      let reads = 0
      IDBObjectStore.prototype.get = function (key) {
        if (Array.isArray(key) && ++reads === 3) this.transaction.db.close()
        return get.call(this, key)
      }
    },
    kinds: ['restarted', 'not-stored'],
    maxSent: SIZE
  }
}
for (const [what, { fail, kinds, maxSent }] of Object.entries(failing)) {
  test(`a storage that fails while it is read does not fail the load: ${what}`, async ({ shared }) => {
    const { path, rewrite, requests } = await scripted(shared)
    await withoutFiles(shared)
    await load(shared, { worker: false }, path)
    await shared.evaluate(fail)
    await rewrite({})
    const found = await loadReporting(shared, path, { worker: false })
    await expectRandomModel(shared)
    expect(sent(await requests())).toBeLessThanOrEqual(maxSent)
    expect(found.kinds).toEqual(kinds)
    if (kinds.includes('not-stored')) return
    await load(shared, { cache: 'only', worker: false }, path)
    await expectRandomModel(shared)
  })
}

test('`only` fails with `not-cached` where the storage cannot be read', async ({ shared }) => {
  await withoutFiles(shared)
  await load(shared, { worker: false }, SPREAD_MODEL)
  await shared.evaluate(() => {
    IDBObjectStore.prototype.get = () => { throw new DOMException('lost', 'UnknownError') }
  })
  expect((await loadFailure(shared, SPREAD_MODEL, { worker: false, cache: 'only' })).code).toBe('not-cached')
})

test('parts that are gone are fetched again, and no others: blobs', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared)
  await withoutFiles(shared)
  const here = { worker: false }
  await load(shared, here, path)
  await inDatabase(shared, `
    const [file] = await done(database.transaction('files').objectStore('files').getAll())
    const parts = database.transaction('parts', 'readwrite').objectStore('parts')
    for (const index of [2, 7]) await done(parts.delete([file.id, file.stored[index].key]))`)
  await rewrite({})
  const { kinds } = await loadReporting(shared, path, here)
  expect(kinds).toEqual(['resumed'])
  expect((await requests()).map(({ sent }) => sent)).toEqual([MIB, MIB])
  await expectRandomModel(shared)
  // All of them gone.
  await inDatabase(shared, `await done(database.transaction('parts', 'readwrite').objectStore('parts').clear())`)
  expect((await loadFailure(shared, path, { cache: 'only', ...here })).code).toBe('not-cached')
  await rewrite({})
  await load(shared, here, path)
  expect(sent(await requests())).toBe(SIZE)
})

test('parts that are gone are fetched again, and no others: the end of a file, then all of it', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared)
  await load(shared, {}, path)
  const [{ id, stored }] = await records(shared) as [StoredFile]
  const { start } = stored[7]!
  await shared.evaluate(async ([id, size]) => {
    const file = await (await (await navigator.storage.getDirectory()).getDirectoryHandle('tritloom')).getFileHandle(id)
    const writable = await file.createWritable({ keepExistingData: true })
    await writable.truncate(size)
    await writable.close()
  }, [id, start + 1] as const)
  await rewrite({})
  const { notes } = await loadReporting(shared, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: start }])
  expect(sent(await requests())).toBe(SIZE - start)
  await expectRandomModel(shared)
  await shared.evaluate(async () => (await navigator.storage.getDirectory()).removeEntry('tritloom', { recursive: true }))
  expect((await loadFailure(shared, path, { cache: 'only' })).code).toBe('not-cached')
  await rewrite({})
  await load(shared, {}, path)
  expect(sent(await requests())).toBe(SIZE)
  await load(shared, { cache: 'only' }, path)
})

test('what is stored as blobs is read where new bytes go to files, and the missing ones join it', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared)
  await withoutFiles(shared)
  await load(shared, { worker: false }, path)
  await inDatabase(shared, `
    const [file] = await done(database.transaction('files').objectStore('files').getAll())
    const parts = database.transaction('parts', 'readwrite').objectStore('parts')
    for (const index of [2, 7]) await done(parts.delete([file.id, file.stored[index].key]))`)
  await shared.evaluate(() => window.restore())
  await rewrite({})
  expect((await loadReporting(shared, path)).kinds).toEqual(['resumed'])
  expect((await requests()).map(({ sent }) => sent)).toEqual([MIB, MIB])
  await expectRandomModel(shared)
  await load(shared, { cache: 'only' }, path)
  await expectRandomModel(shared)
  const counts = await inDatabase(shared, `return done(database.transaction('parts').objectStore('parts').count())`)
  expect([counts, await filesOnDisk(shared)]).toEqual([8, [(await records(shared))[0]!.id]])
})

test('where no other threads may run, all is stored in IndexedDB, and files are read all the same', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared)
  await load(shared, {}, path)
  await shared.evaluate(() => {
    window.Worker = class { constructor() { throw new DOMException('the policy', 'SecurityError') } } as unknown as typeof Worker
  })
  await rewrite({})
  await load(shared, { worker: false, cache: 'only' }, path)
  await expectRandomModel(shared)
  expect(await requests()).toEqual([])
  await load(shared, { worker: false, cache: 'refresh' }, path)
  const counts = await inDatabase(shared, `return done(database.transaction('parts').objectStore('parts').count())`)
  expect([counts, await filesOnDisk(shared)]).toEqual([10, []])
})

test('where the browser does not estimate its room, as Safari before 17, all is stored', async ({ harness }) => {
  await harness.evaluate(() => Reflect.deleteProperty(StorageManager.prototype, 'estimate'))
  await load(harness, { worker: false }, SPREAD_MODEL)
  expect(await storedModels(harness)).toEqual([expect.objectContaining({ bytes: SIZE, complete: true })])
  expect(await harness.evaluate(() => window.tritloom.BitNet.cache.estimate())).toEqual({ usage: 0, quota: 0 })
})

test('records that are no stored files are cleared away', async ({ shared }) => {
  const { path, url } = await scripted(shared)
  await load(shared, {}, path)
  await inDatabase(shared, `
    const [file] = await done(database.transaction('files').objectStore('files').getAll())
    const transaction = database.transaction(['files', 'parts'], 'readwrite')
    const files = transaction.objectStore('files'), parts = transaction.objectStore('parts')
    await done(files.put({ id: 'a', url: file.url, complete: true }))
    await done(files.put({ ...file, id: 'b', stored: [{ key: 0, start: 0, length: 1e15 }] }))
    await done(files.put({ ...file, id: 'c', schema: 77 }))
    await done(files.put({ ...file, total: file.total + 1 }))
    await done(parts.put('no blob', ['nobody', 0]))
    await done(parts.put(new Blob(['x']), 17))`)
  await shared.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('tritloom')
    await folder.getFileHandle('nobody', { create: true })
  })
  // The model's own record is wrong too, so the model is downloaded anew.
  expect((await loadFailure(shared, path, { cache: 'only' })).code).toBe('not-cached')
  await load(shared, {}, path)
  await expectRandomModel(shared)
  expect(await storedModels(shared)).toMatchObject([{ url, complete: true }])
  const counts = await inDatabase(shared, `
    const transaction = database.transaction(['files', 'parts'])
    return [await done(transaction.objectStore('files').count()), await done(transaction.objectStore('parts').count())]`)
  expect(counts).toEqual([1, 0])
  expect(await filesOnDisk(shared)).toEqual([(await records(shared))[0]!.id])
})

test('a database of a later release is left alone', async ({ harness }) => {
  await harness.evaluate(() => new Promise<void>(resolve => {
    const opening = indexedDB.open('tritloom', 99)
    opening.onsuccess = () => resolve(opening.result.close())
  }))
  const { path, requests } = await scripted(harness)
  const { kinds } = await loadReporting(harness, path)
  expect(kinds).toEqual(['not-stored'])
  await expectRandomModel(harness)
  expect((await requests()).length).toBe(10)
})

test('where the stored file is not the one of `integrity`, the file at the address is fetched and compared', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared, { always: { size: SIZE + 4 } })
  await load(shared, {}, path)
  const integrity = integrityOf(spreadModel())
  expect((await loadFailure(shared, path, { integrity, cache: 'only' })).code).toBe('integrity')
  expect((await loadFailure(shared, path, { integrity })).code).toBe('integrity')
  // Stored bytes stay.
  expect(await storedModels(shared)).toMatchObject([{ complete: true, bytes: SIZE + 4 }])
  await rewrite({})
  const { kinds } = await loadReporting(shared, path, { integrity })
  expect(kinds).toContain('restarted')
  await expectRandomModel(shared)
  expect(await storedModels(shared)).toMatchObject([{ complete: true, bytes: SIZE }])
  await rewrite({ always: { drop: true } })
  await load(shared, { integrity }, path)
  expect(await requests()).toEqual([])
})

test('a storage that fails is a `storage` error of the calls that need it', async ({ harness }) => {
  await harness.evaluate(() => {
    const open = () => { throw new DOMException('no storage here', 'SecurityError') }
    IDBFactory.prototype.open = open
  })
  const message = expect.stringMatching(/storage failed: .*SecurityError: no storage here/)
  for (const call of ['list()', `delete('${SPREAD_MODEL}')`, `verify('${SPREAD_MODEL}')`, 'clear()']) {
    expect(await failure(harness, `await BitNet.cache.${call}`), call).toEqual({ code: 'storage', message })
  }
})

/** In the page's own thread, whose disk's threads begin with `script`. They are `window.threads`. */
const changeDisk = (page: Page, script: string) => page.evaluate(script => {
  const whole = `${script}; import '${location.origin}/pkg/threads/disk-worker.js'`
  const url = URL.createObjectURL(new Blob([whole], { type: 'text/javascript' }))
  window.threads = []
  window.Worker = class extends Worker {
    constructor(_: string | URL, options?: WorkerOptions) {
      super(url, options)
      window.threads.push(this)
    }
  }
}, script)

/** In the page's own thread, whose disk writes five MiB and then no more until `release`. */
const holdDisk = (page: Page) => changeDisk(page, `import '${new URL('/tests/web/held-disk.mjs', page.url()).href}'`)

const release = (page: Page) => page.evaluate(async () => {
  await (await navigator.storage.getDirectory()).getFileHandle('release', { create: true })
})

test('a model answers before it is stored; what is left is stored behind it, and told', async ({ harness }) => {
  await holdDisk(harness)
  const { path, url } = await scripted(harness)
  await harness.evaluate(async path => {
    const onProgress = (progress: import('../../pkg/index.js').Progress) => { window.progress = progress }
    window.model = await window.tritloom.BitNet.load(path, { backend: 'cpu', worker: false, onProgress })
  }, path)
  await expectRandomModel(harness)
  const told = () => harness.evaluate(() => window.progress)
  expect(await told()).toMatchObject({ phase: 'storing', total: SIZE, fraction: 1, notes: [] })
  expect((await told())!.loaded).toBeLessThanOrEqual(5 * MIB)
  expect(await storedModels(harness)).toMatchObject([{ url, complete: false }])
  await release(harness)
  await harness.evaluate(() => window.model.stored)
  expect(await told()).toMatchObject({ phase: 'stored', loaded: SIZE, total: SIZE, fraction: 1, notes: [] })
  expect(await storedModels(harness)).toMatchObject([{ url, complete: true, bytes: SIZE }])
  await load(harness, { cache: 'only', worker: false }, path)
  await expectRandomModel(harness)
})

test('a disk that cannot be read once is no damage: its bytes are read in another way, or again', async ({ harness }) => {
  await changeDisk(harness, `FileSystemSyncAccessHandle.prototype.read = () => { throw new DOMException('not now', 'NotReadableError') }`)
  const { path, rewrite, requests } = await scripted(harness)
  const options = { worker: false } as const
  await load(harness, options, path)
  await rewrite({})
  expect((await loadReporting(harness, path, options)).kinds).toEqual([])
  await expectRandomModel(harness)
  // Nor can the page, once.
  await harness.evaluate(() => {
    const { arrayBuffer } = Blob.prototype
    let fails = true
    Blob.prototype.arrayBuffer = async function () {
      const failed = fails
      fails = false
      if (failed) throw new DOMException('not now', 'NotReadableError')
      return arrayBuffer.call(this)
    }
  })
  expect((await loadReporting(harness, path, options)).kinds).toEqual([])
  await expectRandomModel(harness)
  expect(await requests()).toEqual([])
  expect(await verify(harness, path)).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
})

test('a thread that is killed is noticed: nothing waits for what it was asked', async ({ harness }) => {
  await holdDisk(harness)
  const { path } = await scripted(harness)
  await harness.evaluate(async path => {
    const onProgress = (progress: import('../../pkg/index.js').Progress) => { window.progress = progress }
    window.model = await window.tritloom.BitNet.load(path, { worker: false, onProgress })
    for (const thread of window.threads) thread.terminate()
  }, path)
  await harness.waitForFunction(() => window.progress?.notes.some(({ kind }) => kind === 'not-stored'), undefined, { timeout: 20_000 })
  await harness.evaluate(() => window.model.stored)
  await expectRandomModel(harness)
})

test('at most 12 MiB are read ahead', async ({ harness }) => {
  const size = 40 * MIB
  const { path } = await scripted(harness, { always: { size } })
  const options = { worker: false } as const
  await load(harness, options, path)
  await harness.evaluate(() => {
    let bytes = 0
    window.mostRead = 0
    window.Worker = class extends Worker {
      #asked = new Map<number, number>()

      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options)
        this.addEventListener('message', ({ data: { id } }) => { bytes -= this.#asked.get(id) ?? 0 })
      }

      override postMessage(message: { id: number, kind: string, length: number }, transfer?: object) {
        if (message.kind === 'read') {
          this.#asked.set(message.id, message.length)
          window.mostRead = Math.max(window.mostRead, bytes += message.length)
        }
        super.postMessage(message, transfer)
      }
    }
  })
  // All of the file is read, to hash it.
  const integrity = integrityOf(Buffer.concat([spreadModel()], size))
  await load(harness, { ...options, cache: 'only', integrity }, path)
  const most = await harness.evaluate(() => window.mostRead)
  expect(most).toBeGreaterThan(6 * MIB)
  expect(most).toBeLessThanOrEqual(12 * MIB)
})

test('a tab that looks for a model while another stores it does it no harm', async ({ harness, browser }) => {
  await holdDisk(harness)
  const { path, url, requests } = await scripted(harness)
  await harness.evaluate(async path => {
    window.model = await window.tritloom.BitNet.load(path, { worker: false })
  }, path)
  const second = await open(browser, harness.context(), 'cpu')
  // It has read how large the file is, and goes on when all has been stored.
  await second.page.evaluate(path => {
    const getFile = FileSystemFileHandle.prototype.getFile
    const all = new Promise(resolve => { addEventListener('stored', resolve) })
    FileSystemFileHandle.prototype.getFile = async function () {
      const file = await getFile.call(this)
      document.title = 'read'
      await all
      return file
    }
    const loading = window.tritloom.BitNet.load(path, { worker: false })
    Object.assign(window, { loading })
  }, path)
  await expect.poll(() => second.page.title()).toBe('read')
  await release(harness)
  await harness.evaluate(() => window.model.stored)
  await second.page.evaluate(async () => {
    dispatchEvent(new Event('stored'))
    await (window as unknown as { loading: Promise<unknown> }).loading
  })
  expect(await storedModels(harness)).toMatchObject([{ url, complete: true, bytes: SIZE }])
  expect(sent(await requests())).toBe(SIZE)
  await second.page.close()
})

// Ten seconds: it sends 100 MB, to fill every buffer between the server and the disk.
test('a page that closes before a model is stored loses only what was not; no more than 10 MiB wait', async ({ harness, browser }) => {
  const size = 100 * MIB
  const first = await open(browser, harness.context(), 'cpu')
  await holdDisk(first.page)
  const { path, rewrite, requests } = await scripted(harness, { always: { size } })
  await first.page.evaluate(async path => {
    window.model = await window.tritloom.BitNet.load(path, { worker: false })
  }, path)
  const bytes = async () => (await storedModels(harness))[0]!.bytes
  await expect.poll(bytes, { intervals: [50] }).toBeGreaterThan(2 * MIB)
  // The download stands still although the server would send more.
  let before = -1
  await expect.poll(async () => {
    const now = sent(await requests())
    const stands = now === before
    before = now
    return stands
  }, { intervals: [300] }).toBe(true)
  // The bytes that a connection holds were sent too.
  expect(before).toBeLessThanOrEqual(await bytes() + 16 * MIB)
  expect(before).toBeGreaterThan(8 * MIB)
  const stored = await bytes()
  await first.page.close()
  await rewrite({ always: { size } })
  const { notes } = await loadReporting(harness, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: stored }])
  expect(sent(await requests())).toBe(size - stored)
  await expectRandomModel(harness)
  expect(await verify(harness, path)).toEqual({ whole: true, bytes: size, damagedBytes: 0 })
})
