// Models in several files: loaded by the address of the first, stored each by itself, one model to
// the page.
import type { Page } from '@playwright/test'
import {
  expect, expectNeverBack, expectRandomModel, load, loadFailure, loadReporting, MIB, scripted, sent,
  server, storedModels, test
} from './harness'
import { volumes } from './models.mjs'

test.use({ backend: 'cpu' })

const volume = (number: number, name = 'spread') => `/volumes/${name}-0000${number}-of-00003.gguf`
const FIRST = volume(1)
const SIZES = volumes(3).map(bytes => bytes.length)
const SIZE = SIZES.reduce((sum, size) => sum + size, 0)

test('all files are fetched, stored and listed as one model', { tag: '@quick' }, async ({ shared }) => {
  const { reports, notes } = await loadReporting(shared, FIRST)
  await expectRandomModel(shared)
  expect(notes).toEqual([])
  expectNeverBack(reports)
  const downloads = reports.filter(({ phase }) => phase === 'download')
  expect(downloads.every(({ total }) => total === SIZE)).toBe(true)
  expect(downloads.at(-1)!.loaded).toBe(SIZE)

  const url = new URL(FIRST, shared.url()).href
  const whole = { url, bytes: SIZE, total: SIZE, complete: true }
  expect(await storedModels(shared)).toMatchObject([whole])
  const requests = await server(shared, 'off')
  try {
    const second = await loadReporting(shared, FIRST, { cache: 'only' })
    await expectRandomModel(shared)
    expect(second.reports.some(({ phase, total }) => phase === 'cache' && total === SIZE)).toBe(true)
    expect(await server(shared, 'count')).toBe(requests)
  } finally {
    await server(shared, 'on')
  }
  const verify = () => shared.evaluate(url => window.tritloom.BitNet.cache.verify(url), FIRST)
  expect(await verify()).toEqual({ whole: true, bytes: SIZE, damagedBytes: 0 })
  await shared.evaluate(url => window.tritloom.BitNet.cache.delete(url), FIRST)
  expect(await storedModels(shared)).toEqual([])
  expect((await loadFailure(shared, FIRST, { cache: 'only' })).code).toBe('not-cached')
})

test('after an abort, only what is missing is fetched', async ({ shared }) => {
  // A byte of each file but the first, a part of each, and two more of the first.
  const script = { then: Array(7).fill({ hold: null }), always: { hold: 0 } }
  const { path, rewrite, requests } = await scripted(shared, script, FIRST)
  await shared.evaluate(async ([path, bytes]) => {
    const abort = new AbortController()
    const loading = window.load(path, { signal: abort.signal }).catch(error => error)
    const { cache } = window.tritloom.BitNet
    const stored = async () => (await cache.list())[0]?.bytes ?? 0
    while (await stored() < bytes || (await cache.verify(path)).bytes < await stored()) {
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    abort.abort(new Error('enough'))
    await loading
  }, [path, 5 * MIB] as const)
  const [begun] = await storedModels(shared)
  expect(begun).toMatchObject({ complete: false, bytes: 5 * MIB, total: SIZE })
  await rewrite({})
  const { notes } = await loadReporting(shared, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: begun!.bytes }])
  await expectRandomModel(shared)
  // A byte of each file but the first says whether it is still the same.
  expect(sent(await requests())).toBe(SIZE - begun!.bytes + 2)
  expect(await storedModels(shared)).toMatchObject([{ complete: true, bytes: SIZE }])
})

/** Deletes the second file from the storage. */
const loseSecond = (page: Page) =>
  page.evaluate(() => new Promise<void>((resolve, reject) => {
    const opening = indexedDB.open('tritloom')
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const transaction = opening.result.transaction('files', 'readwrite')
      const files = transaction.objectStore('files')
      const all = files.getAll()
      all.onsuccess = () => files.delete(all.result.find(file => file.url.includes('-00002-of-')).id)
      transaction.oncomplete = () => {
        opening.result.close()
        resolve()
      }
    }
  }))

/** The versions of the stored files, in the order of their addresses. */
const etags = (page: Page) =>
  page.evaluate(() => new Promise<string[]>((resolve, reject) => {
    const opening = indexedDB.open('tritloom')
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const all = opening.result.transaction('files').objectStore('files').getAll()
      all.onsuccess = () => {
        opening.result.close()
        all.result.sort((a, b) => a.url < b.url ? -1 : 1)
        resolve(all.result.map(file => file.version.etag))
      }
    }
  }))

test('a file that is gone from the storage is fetched anew, and no other', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared, {}, FIRST)
  await load(shared, {}, path)
  await loseSecond(shared)
  const bytes = SIZES[0]! + SIZES[2]!
  expect(await storedModels(shared)).toMatchObject([{ complete: false, bytes }])
  expect((await loadFailure(shared, path, { cache: 'only' })).code).toBe('not-cached')
  await rewrite({})
  const { notes } = await loadReporting(shared, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes }])
  await expectRandomModel(shared)
  expect(await storedModels(shared)).toMatchObject([{ complete: true, bytes: SIZE }])
  // The others are asked for their version only.
  expect((await requests()).filter(({ sent }) => sent > 1).length).toBeLessThanOrEqual(5)
})

test('files of two versions are never mixed', async ({ shared }) => {
  const { path, rewrite } = await scripted(shared, { always: { etag: '"1"' } }, FIRST)
  await load(shared, {}, path)
  await loseSecond(shared)
  await rewrite({ always: { etag: '"2"' } })
  const { kinds } = await loadReporting(shared, path)
  // The first file has changed, then the third: what is stored of them is no use.
  expect(kinds).toEqual(['restarted'])
  await expectRandomModel(shared)
  expect(await etags(shared)).toEqual(['"2"', '"2"', '"2"'])
})

test('`revalidate` fetches the files of which the server has another version, and no others', async ({ shared }) => {
  const { path, rewrite, requests } = await scripted(shared, { always: { etag: '"1"' } }, FIRST)
  await load(shared, {}, path)
  const [old, changed] = [{ etag: '"1"' }, { etag: '"2"' }]
  const revalidated = () => loadReporting(shared, path, { cache: 'revalidate' })
  await rewrite({ always: old })
  expect((await revalidated()).notes).toEqual([])
  expect(sent(await requests())).toBe(3)

  // A byte of each file shows that the second has changed. The others are asked for once more, so that no
  // two versions are mixed.
  await rewrite({ then: [old, changed, old, old, changed, old], always: changed })
  expect((await revalidated()).notes).toEqual([{ kind: 'resumed', bytes: SIZES[0]! + SIZES[2]! }])
  await expectRandomModel(shared)
  const ofParts = (await requests()).slice(6)
  expect(sent(ofParts)).toBe(SIZES[1])
  expect(await etags(shared)).toEqual(['"1"', '"2"', '"1"'])
  expect(await storedModels(shared)).toMatchObject([{ complete: true, bytes: SIZE }])

  await rewrite({ then: [old, changed, old] })
  expect((await revalidated()).notes).toEqual([])
  await rewrite({ then: [old, { status: 404 }, old] })
  expect((await revalidated()).notes).toEqual([{ kind: 'not-revalidated', why: expect.stringContaining('404') }])
  await expectRandomModel(shared)
  expect((await requests()).length).toBe(3)
})

test('without storage, the files are read from the network alone', async ({ shared }) => {
  await load(shared, { cache: 'off' }, FIRST)
  await expectRandomModel(shared)
  expect(await storedModels(shared)).toEqual([])
})

test('an address may have a query, and a Request serves for all files', async ({ shared }) => {
  await shared.evaluate(async url => { await window.load(new Request(`${url}?download=true`)) }, FIRST)
  await expectRandomModel(shared)
  const url = new URL(`${FIRST}?download=true`, shared.url()).href
  expect(await storedModels(shared)).toEqual([expect.objectContaining({ url, complete: true })])
})

test('what is not all of a model is refused', async ({ shared }) => {
  const refused = async (url: string, options: object, code: string, ...facts: string[]) => {
    const { code: found, message } = await loadFailure(shared, url, options)
    expect(found, message).toBe(code)
    for (const fact of facts) expect(message).toContain(fact)
    expect(await storedModels(shared)).toEqual([])
  }
  await refused(volume(2), {}, 'bad-option', '`source`', 'file 2 of 3', FIRST)
  await refused(volume(1, 'missing'), {}, 'http', '404', volume(3, 'missing'))
  await refused(volume(1, 'swapped'), {}, 'bad-gguf', 'file 2 of 3', 'number 3')
  await refused(FIRST.replace('00003', '99999'), {}, 'bad-option', '`source`', '99999')
  await refused(`/as/slow${FIRST}`, {}, 'network', 'does not send parts')
  const integrity = `sha256-${'A'.repeat(43)}=`
  await refused(FIRST, { integrity }, 'bad-option', '`integrity`', 'several files')
})
