// Room on the device: asked for once, made at the cost of what was used longest ago, done without.
import { statSync } from 'node:fs'
import type { CDPSession, Page } from '@playwright/test'
import { expect, expectGolden, failure, load, loadAndTell, MODEL, play, RANDOM_MODEL, stored, test } from './harness'

const SIZE = statSync(`.${MODEL}`).size
const MIB = 1 << 20

/** One for each page: the quota is that of the session that spoke first. */
const sessions = new WeakMap<Page, CDPSession>()

/** Grants the page so many bytes beyond what it uses now. Its own `estimate` does not show that. */
const grant = async (page: Page, bytes: number) => {
  const { usage = 0 } = await page.evaluate(() => navigator.storage.estimate())
  const session = sessions.get(page) ?? await page.context().newCDPSession(page)
  sessions.set(page, session)
  await session.send('Storage.overrideQuotaForOrigin', { origin: new URL(page.url()).origin, quotaSize: usage + bytes })
  await page.waitForTimeout(5000)
}

// Without a pause after it, a new quota was not noticed in some runs; presumably the browser remembers the old room.
test.describe.configure({ retries: 3 })

/** A full disk that the browser's estimate does not show: writes fail beyond so many bytes. */
const fillDisk = (page: Page, bytes: number) =>
  page.evaluate(bytes => {
    const put = IDBObjectStore.prototype.put
    IDBObjectStore.prototype.put = function (value, key) {
      if (value instanceof Blob && (bytes -= value.size) < 0) throw new DOMException('no space', 'QuotaExceededError')
      return put.call(this, value, key)
    }
  }, bytes)

test('a model that does not fit is loaded without being stored, says so, and is not there offline', async ({ harness }) => {
  await grant(harness, 5 * MIB)
  const { path, asked } = await play(harness, {})
  const { notes } = await loadAndTell(harness, path)
  expect(notes).toEqual([{ kind: 'not-stored', why: expect.stringContaining('storage is full') }])
  await expectGolden(harness)
  expect(await stored(harness)).toEqual([])
  const found = await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)
  expect(found).toMatchObject({ code: 'storage-full', message: expect.stringContaining(String(SIZE)) })
  expect((await asked()).length).toBe(10)
  // When there is room, it is stored as ever.
  await grant(harness, 100 * MIB)
  expect((await loadAndTell(harness, path)).kinds).toEqual([])
  await load(harness, { cache: 'only' }, path)
})

test('the model used longest ago gives way, only when it must, and is named', async ({ harness }) => {
  const [a, b, c, d] = await Promise.all([1, 2, 3, 4].map(() => play(harness, {})))
  await load(harness, {}, a!.path)
  await load(harness, {}, b!.path)
  // Used again: now the second is the one used longest ago.
  await load(harness, {}, a!.path)
  await grant(harness, SIZE + 4 * MIB)
  expect((await loadAndTell(harness, c!.path)).kinds).toEqual([])
  expect((await stored(harness)).length).toBe(3)
  await grant(harness, 4 * MIB)
  const { notes } = await loadAndTell(harness, d!.path)
  expect(notes).toEqual([{ kind: 'evicted', url: b!.url, bytes: SIZE }])
  await expectGolden(harness)
  const urls = (await stored(harness)).map(({ url }) => url)
  expect(urls.sort()).toEqual([a!.url, c!.url, d!.url].sort())
  // One that would not fit in place of all of them leaves them alone.
  await grant(harness, -2 * MIB)
  const big = await play(harness, { always: { size: 8 * SIZE } })
  const { kinds } = await loadAndTell(harness, big.path)
  expect(kinds).toEqual(['not-stored'])
  expect((await stored(harness)).length).toBe(3)
})

test('a disk that is full in the middle: the load goes on, says so, and leaves nothing behind', async ({ harness }) => {
  await fillDisk(harness, 5 * MIB)
  const { path, asked } = await play(harness, {})
  const { notes } = await loadAndTell(harness, path, { worker: false })
  expect(notes).toEqual([{ kind: 'not-stored', why: expect.stringContaining('full') }])
  await expectGolden(harness)
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBe(SIZE)
  expect(await stored(harness)).toEqual([])
  expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)).code).toBe('storage-full')
})

test('a disk too full for the rest: what is here is read, and kept', async ({ harness }) => {
  const { path, script, asked } = await play(harness, {
    then: Array(6).fill({ status: 0 }), always: { status: 503, headers: { 'retry-after': '86400' } }
  })
  expect((await failure(harness, `await BitNet.load('${path}')`)).code).toBe('http')
  const { bytes } = (await stored(harness))[0]!
  expect(bytes).toBeGreaterThan(2 * MIB)
  await fillDisk(harness, 2 * MIB)
  await script({})
  const { kinds } = await loadAndTell(harness, path, { worker: false })
  expect(kinds).toEqual(['resumed', 'not-stored'])
  await expectGolden(harness)
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBe(SIZE - bytes)
  expect((await stored(harness))[0]).toMatchObject({ complete: false, bytes: bytes + 2 * MIB })
})

test('a browser that blocks IndexedDB loads all the same', async ({ harness }) => {
  for (const block of ['throws', 'is missing'] as const) {
    await harness.evaluate(block => {
      Object.defineProperty(globalThis, 'indexedDB', {
        configurable: true,
        value: block === 'throws' ? { open() { throw new DOMException('blocked', 'SecurityError') } } : undefined
      })
    }, block)
    const { path } = await play(harness, {})
    const { kinds } = await loadAndTell(harness, path, { worker: false })
    expect(kinds).toEqual(['not-stored'])
    await expectGolden(harness)
    expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only', worker: false })`)).code).toBe('not-cached')
  }
})

test('the browser is asked once not to delete models on its own', async ({ harness }) => {
  await harness.addInitScript(() => {
    const persist = StorageManager.prototype.persist
    StorageManager.prototype.persist = function () {
      sessionStorage.setItem('asked', String(Number(sessionStorage.getItem('asked')) + 1))
      return persist.call(this)
    }
    StorageManager.prototype.persisted = async () => false
  })
  const asked = () => harness.evaluate(() => Number(sessionStorage.getItem('asked')))
  await harness.reload()
  await harness.waitForFunction(() => window.ternlight)
  await load(harness, { cache: 'off' }, RANDOM_MODEL)
  expect(await asked()).toBe(0)
  await load(harness, {}, RANDOM_MODEL)
  await expect.poll(asked).toBe(1)
  await load(harness, { cache: 'refresh' }, RANDOM_MODEL)
  await harness.reload()
  await harness.waitForFunction(() => window.ternlight)
  await load(harness, {}, RANDOM_MODEL)
  expect(await asked()).toBe(1)
  expect(typeof await harness.evaluate(() => window.ternlight.BitNet.cache.persist())).toBe('boolean')
})
