// What lies on the device: found damaged, found lost, found written by an earlier release.
import { readFileSync, statSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { expect, expectGolden, failure, load, loadAndTell, MODEL, play, stored, test } from './harness'

const SIZE = statSync(`.${MODEL}`).size
const MIB = 1 << 20

/** Work on the database itself: `work` gets it, and a function that awaits a request. */
const inDatabase = (page: Page, work: string) =>
  page.evaluate(work => new Promise((resolve, reject) => {
    const opening = indexedDB.open('ternlight')
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

/** Changes a byte of the chunk that is number `index` in the file. */
const flip = (page: Page, index: number) => inDatabase(page, `
  const [file] = await done(database.transaction('files').objectStore('files').getAll())
  const key = [file.id, file.chunks[${index}].key]
  const bytes = new Uint8Array(await (await done(database.transaction('chunks').objectStore('chunks').get(key))).arrayBuffer())
  bytes[12345] ^= 1
  await done(database.transaction('chunks', 'readwrite').objectStore('chunks').put(new Blob([bytes]), key))
  return file.chunks[${index}]`)

test('chunks are small, hashed, and add up to the file', async ({ harness }) => {
  const { path } = await play(harness, {})
  await load(harness, {}, path)
  const [file] = await inDatabase(harness, `return done(database.transaction('files').objectStore('files').getAll())`) as {
    total: number, version: { etag: string }, finalUrl: string, chunks: { start: number, length: number, sha256: string }[]
  }[]
  expect(file).toMatchObject({ total: SIZE, complete: true, version: { etag: `"${SIZE}"` }, finalUrl: expect.stringContaining(path) })
  const bytes = readFileSync(`.${MODEL}`)
  let end = 0
  for (const { start, length, sha256 } of file!.chunks) {
    expect(start).toBe(end)
    expect(length).toBeLessThanOrEqual(16 * MIB)
    const hash = await crypto.subtle.digest('SHA-256', bytes.subarray(start, start + length))
    expect(sha256).toBe(Buffer.from(hash).toString('base64'))
    end = start + length
  }
  expect(end).toBe(SIZE)
})

test('a flipped byte: `verify` finds it, and only its chunk is fetched again', async ({ harness }) => {
  const { path, script, asked } = await play(harness, {})
  const verify = () => harness.evaluate(path => window.ternlight.BitNet.cache.verify(path), path)
  expect((await failure(harness, `await BitNet.cache.verify('${path}')`)).code).toBe('not-cached')
  await load(harness, {}, path)
  expect(await verify()).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
  const { length, start } = await flip(harness, 4) as { length: number, start: number }
  await script({})
  expect(await verify()).toEqual({ whole: false, bytes: SIZE - length, damagedBytes: length })
  expect(await stored(harness)).toMatchObject([{ complete: false, bytes: SIZE - length }])
  const { notes } = await loadAndTell(harness, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: SIZE - length }])
  expect(await asked()).toMatchObject([{ range: `bytes=${start}-${start + length - 1}`, sent: length }])
  await expectGolden(harness)
  expect(await verify()).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
})

test('a flipped byte is found by a load as well, which mends it', async ({ harness }) => {
  const { path, script, asked } = await play(harness, {})
  await load(harness, {}, path)
  const { length } = await flip(harness, 6) as { length: number }
  await script({})
  const { kinds, reports } = await loadAndTell(harness, path)
  expect(kinds).toEqual(['restarted', 'resumed'])
  const fractions = reports.map(({ fraction }) => fraction)
  expect(fractions).toEqual([...fractions].sort((a, b) => a - b))
  expect((await asked()).map(({ sent }) => sent)).toEqual([length])
  await expectGolden(harness)
  await flip(harness, 6)
  expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)).code).toBe('not-cached')
})

test('many flipped bytes are mended in one load, and no other parts are fetched', async ({ harness }) => {
  const { path, script, asked } = await play(harness, {})
  await load(harness, {}, path)
  let damaged = 0
  for (const index of [0, 2, 3, 5, 6, 8]) damaged += (await flip(harness, index) as { length: number }).length
  await script({})
  const { kinds } = await loadAndTell(harness, path)
  expect(kinds).toEqual(['restarted', 'resumed'])
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBe(damaged)
  await expectGolden(harness)
  expect(await harness.evaluate(path => window.ternlight.BitNet.cache.verify(path), path)).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
})

test('a flipped byte behind the last tensor, found only by `integrity`, is mended as well', async ({ harness }) => {
  const size = 12 * MIB
  const { path, script, asked } = await play(harness, { always: { size } })
  await load(harness, {}, path)
  const hash = await crypto.subtle.digest('SHA-256', Buffer.concat([readFileSync(`.${MODEL}`)], size))
  const integrity = `sha256-${Buffer.from(hash).toString('base64')}`
  await flip(harness, 11)
  const only = `await BitNet.load('${path}', { integrity: '${integrity}', cache: 'only' })`
  expect((await failure(harness, only)).code).toBe('not-cached')
  await load(harness, {}, path)
  const { length } = await flip(harness, 11) as { length: number }
  await script({ always: { size } })
  const { kinds } = await loadAndTell(harness, path, { integrity })
  expect(kinds).toEqual(['restarted', 'resumed'])
  expect((await asked()).map(({ sent }) => sent)).toEqual([length])
  expect((await failure(harness, only)).code).toBe('none')
})

/** What fails of the database in the page's own thread, once a model is stored, and what the page is then told. */
const failing: Record<string, { fail: () => void, kinds: string[], most: number }> = {
  'one chunk cannot be read': {
    fail: () => {
      const get = IDBObjectStore.prototype.get
      IDBObjectStore.prototype.get = function (key) {
        if (Array.isArray(key) && key[1] === 3) throw new DOMException('lost', 'UnknownError')
        return get.call(this, key)
      }
    },
    kinds: ['restarted', 'resumed'],
    most: MIB
  },
  'one chunk can be neither read nor deleted': {
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
    most: SIZE
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
    most: SIZE
  }
}
for (const [what, { fail, kinds, most }] of Object.entries(failing)) {
  test(`a storage that fails while it is read is no reason to fail: ${what}`, async ({ harness }) => {
    const { path, script, asked } = await play(harness, {})
    await load(harness, {}, path)
    await harness.evaluate(fail)
    await script({})
    const found = await loadAndTell(harness, path, { worker: false })
    await expectGolden(harness)
    expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBeLessThanOrEqual(most)
    expect(found.kinds).toEqual(kinds)
    if (kinds.includes('not-stored')) return
    await load(harness, { cache: 'only' }, path)
    await expectGolden(harness)
  })
}

test('a storage that cannot be read holds no model for a load that takes no other', async ({ harness }) => {
  await load(harness)
  await harness.evaluate(() => {
    IDBObjectStore.prototype.get = () => { throw new DOMException('lost', 'UnknownError') }
  })
  expect((await failure(harness, `await BitNet.load('${MODEL}', { worker: false, cache: 'only' })`)).code).toBe('not-cached')
})

test('chunks that are gone are fetched again, and no others', async ({ harness }) => {
  const { path, script, asked } = await play(harness, {})
  await load(harness, {}, path)
  await inDatabase(harness, `
    const [file] = await done(database.transaction('files').objectStore('files').getAll())
    const { objectStore: chunks } = { objectStore: database.transaction('chunks', 'readwrite').objectStore('chunks') }
    for (const index of [2, 7]) await done(chunks.delete([file.id, file.chunks[index].key]))`)
  await script({})
  const { kinds } = await loadAndTell(harness, path)
  expect(kinds).toEqual(['resumed'])
  expect((await asked()).map(({ sent }) => sent)).toEqual([MIB, MIB])
  await expectGolden(harness)
  // All of them gone: nothing is left to trust.
  await inDatabase(harness, `await done(database.transaction('chunks', 'readwrite').objectStore('chunks').clear())`)
  expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)).code).toBe('not-cached')
  await script({})
  await load(harness, {}, path)
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBe(SIZE)
})

test('records of strangers are no files, and are cleared away', async ({ harness }) => {
  const { path, url } = await play(harness, {})
  await load(harness, {}, path)
  await inDatabase(harness, `
    const [file] = await done(database.transaction('files').objectStore('files').getAll())
    const transaction = database.transaction(['files', 'chunks'], 'readwrite')
    const files = transaction.objectStore('files'), chunks = transaction.objectStore('chunks')
    await done(files.put({ id: 'a', url: file.url, complete: true }))
    await done(files.put({ ...file, id: 'b', chunks: [{ key: 0, start: 0, length: 1e15 }] }))
    await done(files.put({ ...file, id: 'c', schema: 77 }))
    await done(files.put({ ...file, total: file.total + 1 }))
    await done(chunks.put('no blob', ['nobody', 0]))
    await done(chunks.put(new Blob(['x']), 17))`)
  // Also the model's own record claims what cannot be: it is loaded anew.
  expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)).code).toBe('not-cached')
  await load(harness, {}, path)
  await expectGolden(harness)
  expect(await stored(harness)).toMatchObject([{ url, complete: true }])
  const counts = await inDatabase(harness, `
    const transaction = database.transaction(['files', 'chunks'])
    return [await done(transaction.objectStore('files').count()), await done(transaction.objectStore('chunks').count())]`)
  expect(counts).toEqual([1, 10])
})

test('what the first release stored is taken over; its half downloads are not', async ({ harness }) => {
  const { path, url, asked } = await play(harness, {})
  const half = new URL('/elsewhere.gguf', url).href
  await harness.evaluate(async ([path, url, half]) => {
    // Just as that release did it: version 1, chunks of 16 MiB numbered from 0.
    const bytes = await (await fetch('/models/tiny-stories.gguf')).blob()
    await new Promise<void>((resolve, reject) => {
      const opening = indexedDB.open('ternlight', 1)
      opening.onupgradeneeded = () => {
        opening.result.createObjectStore('files', { keyPath: 'id' })
        opening.result.createObjectStore('chunks')
      }
      opening.onsuccess = () => {
        const transaction = opening.result.transaction(['files', 'chunks'], 'readwrite')
        const file = { id: '17-5', url, complete: true, bytes: bytes.size, chunks: 1, etag: '"e"', lastModified: undefined, added: 5, used: 6 }
        transaction.objectStore('files').put(file)
        transaction.objectStore('files').put({ ...file, id: '18-5', url: half, complete: false, bytes: 16 << 20 })
        transaction.objectStore('chunks').put(bytes, ['17-5', 0])
        transaction.objectStore('chunks').put(new Blob([new Uint8Array(16 << 20)]), ['18-5', 0])
        transaction.oncomplete = () => resolve(opening.result.close())
        transaction.onabort = () => reject(transaction.error)
      }
    })
  }, [path, url, half] as const)
  await load(harness, { cache: 'only' }, path)
  await expectGolden(harness)
  expect(await asked()).toEqual([])
  expect(await stored(harness)).toMatchObject([{ url, complete: true, bytes: SIZE, added: 5, etag: '"e"' }])
  expect((await failure(harness, `await BitNet.load('${half}', { cache: 'only' })`)).code).toBe('not-cached')
  // The next download clears the half away.
  await load(harness, {}, '/tests/data/tiny/tiny-bitnet-b1.58.gguf')
  const ids = await inDatabase(harness, `return (await done(database.transaction('chunks').objectStore('chunks').getAllKeys())).map(([id]) => id)`)
  expect(ids).toContain('17-5')
  expect(ids).not.toContain('18-5')
})

test('a database of a later release is left alone', async ({ harness }) => {
  await harness.evaluate(() => new Promise<void>(resolve => {
    const opening = indexedDB.open('ternlight', 99)
    opening.onsuccess = () => resolve(opening.result.close())
  }))
  const { path, asked } = await play(harness, {})
  const { kinds } = await loadAndTell(harness, path)
  expect(kinds).toEqual(['not-stored'])
  await expectGolden(harness)
  expect((await asked()).length).toBe(10)
})

test('an `integrity` that the stored file has not: the file at the address is fetched, and compared', async ({ harness }) => {
  const { path, script, asked } = await play(harness, { always: { size: SIZE + 4 } })
  await load(harness, {}, path)
  const hash = await crypto.subtle.digest('SHA-256', readFileSync(`.${MODEL}`))
  const integrity = `sha256-${Buffer.from(hash).toString('base64')}`
  expect((await failure(harness, `await BitNet.load('${path}', { integrity: '${integrity}', cache: 'only' })`)).code).toBe('integrity')
  expect((await failure(harness, `await BitNet.load('${path}', { integrity: '${integrity}' })`)).code).toBe('integrity')
  // What was good before is not lost for it.
  expect(await stored(harness)).toMatchObject([{ complete: true, bytes: SIZE + 4 }])
  await script({})
  const { kinds } = await loadAndTell(harness, path, { integrity })
  expect(kinds).toContain('restarted')
  await expectGolden(harness)
  expect(await stored(harness)).toMatchObject([{ complete: true, bytes: SIZE }])
  await script({ always: { drop: true } })
  await load(harness, { integrity }, path)
  expect(await asked()).toEqual([])
})
