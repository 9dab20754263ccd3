// Room on the device: asked for once, made at the cost of what was used longest ago, done without.
import { statSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { insertDisk, setDisk } from './disk'
import type { Disk } from './disk'
import { expect, expectGolden, failure, load, loadAndTell, MODEL, play, RANDOM_MODEL, stored, test } from './harness'

const SIZE = statSync(`.${MODEL}`).size
const MIB = 1 << 20

/** In the page's own thread, where its disk is. */
const HERE = { worker: false }

/** Another model of the same size, which is quick to load: a small one, and zeros. */
const another = (page: Page) => play(page, { always: { size: SIZE } }, RANDOM_MODEL)

const urls = async (page: Page) => (await stored(page)).map(({ url }) => url).sort()

test("a browser's own quota: a model beyond it is loaded without being stored, and says so", async ({ harness }) => {
  // Before anything is stored: the browser remembers for a while what was free.
  const session = await harness.context().newCDPSession(harness)
  await session.send('Storage.overrideQuotaForOrigin', { origin: new URL(harness.url()).origin, quotaSize: 2 * MIB })
  const { path, asked } = await play(harness, {})
  const { notes } = await loadAndTell(harness, path)
  expect(notes).toEqual([{ kind: 'not-stored', why: expect.stringContaining('storage is full') }])
  await expectGolden(harness)
  expect(await stored(harness)).toEqual([])
  const found = await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)
  expect(found).toMatchObject({ code: 'storage-full', message: expect.stringContaining(String(SIZE)) })
  expect((await asked()).length).toBe(10)
})

const disks: Record<string, Partial<Disk>> = {
  'a disk that is full': {},
  'a disk whose estimate is true': { estimate: 'true' },
  'a disk that counts late what was deleted': { late: 2 },
  'a disk that counts late, and whose estimate is true': { estimate: 'true', late: 2 }
}
for (const [what, disk] of Object.entries(disks)) {
  test(`the model used longest ago gives way, only when it must, and is named: ${what}`, async ({ harness }) => {
    await insertDisk(harness)
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => another(harness)))
    await load(harness, HERE, a!.path)
    await load(harness, HERE, b!.path)
    // Used again: now the second is the one used longest ago.
    await load(harness, HERE, a!.path)
    await setDisk(harness, { ...disk, size: 3 * SIZE + 4 * MIB })
    expect((await loadAndTell(harness, c!.path, HERE)).kinds).toEqual([])
    expect(await urls(harness)).toEqual([a!.url, b!.url, c!.url].sort())
    const d = await play(harness, {})
    const { notes } = await loadAndTell(harness, d.path, HERE)
    expect(notes).toEqual([{ kind: 'evicted', url: b!.url, bytes: SIZE }])
    await expectGolden(harness)
    expect(await urls(harness)).toEqual([a!.url, c!.url, d.url].sort())
    await load(harness, { cache: 'only' }, d.path)
    // One that would not fit in place of all of them leaves them alone.
    const large = await play(harness, { always: { size: 4 * SIZE } }, RANDOM_MODEL)
    expect((await loadAndTell(harness, large.path, HERE)).kinds).toEqual(['not-stored'])
    expect((await stored(harness)).filter(({ complete }) => complete).map(({ url }) => url).sort()).toEqual([a!.url, c!.url, d.url].sort())
  })
}

test('room that does not come although a model gave way: no other follows it', async ({ harness }) => {
  await insertDisk(harness)
  const [a, b] = await Promise.all([1, 2].map(() => another(harness)))
  await load(harness, HERE, a!.path)
  await load(harness, HERE, b!.path)
  await setDisk(harness, { size: 2 * SIZE + 4 * MIB, late: Infinity })
  const { path } = await play(harness, {})
  const { kinds } = await loadAndTell(harness, path, HERE)
  expect(kinds).toEqual(['evicted', 'not-stored'])
  await expectGolden(harness)
  expect(await urls(harness)).toEqual([b!.url])
})

for (const fails of ['at once', 'at the end'] as const) {
  test(`a disk that is full in the middle, ${fails}: the load goes on, says so, and leaves nothing behind`, async ({ harness }) => {
    await insertDisk(harness)
    await setDisk(harness, { size: 5 * MIB, fails })
    const { path, asked } = await play(harness, {})
    const { notes } = await loadAndTell(harness, path, HERE)
    expect(notes).toEqual([{ kind: 'not-stored', why: expect.stringContaining('full') }])
    await expectGolden(harness)
    expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBe(SIZE)
    expect(await stored(harness)).toEqual([])
    expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)).code).toBe('storage-full')
    // When there is room, it is stored as ever.
    await setDisk(harness, { size: 2 * SIZE })
    expect((await loadAndTell(harness, path, HERE)).kinds).toEqual([])
    await load(harness, { cache: 'only' }, path)
  })
}

test('a disk too full for the rest: what is here is read, and kept', async ({ harness }) => {
  await insertDisk(harness)
  const { path, script, asked } = await play(harness, {
    then: Array(6).fill({ status: 0 }), always: { status: 503, headers: { 'retry-after': '86400' } }
  })
  expect((await failure(harness, `await BitNet.load('${path}', { worker: false })`)).code).toBe('http')
  const { bytes } = (await stored(harness))[0]!
  expect(bytes).toBeGreaterThan(2 * MIB)
  await setDisk(harness, { size: bytes + 2 * MIB })
  await script({})
  const { kinds } = await loadAndTell(harness, path, HERE)
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
  // Nor is a model stored that comes from an address of the page's own.
  await load(harness, {}, await harness.evaluate(async url => URL.createObjectURL(await (await fetch(url)).blob()), RANDOM_MODEL))
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
