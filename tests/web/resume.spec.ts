// A download that is broken off goes on where it was, if that is safe; and what it brings is the
// model, token by token.
import { statSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { expect, expectGolden, failure, halfway, load, loadAndTell, MODEL, open, play, stored, test } from './harness'
import type { Asked } from './harness'

const SIZE = statSync(`.${MODEL}`).size
const MIB = 1 << 20

const sent = (asked: Asked[]) => asked.reduce((sum, { sent }) => sum + sent, 0)

/** What a server gives that stops halfway. */
const HALF = 5 * MIB

/** Loads until so much is stored, then gives up. */
const breakOff = (page: Page, path: string, bytes = HALF) =>
  page.evaluate(async ([path, bytes]) => {
    const { BitNet } = window.ternlight
    const abort = new AbortController()
    const loading = BitNet.load(path, { signal: abort.signal }).catch(error => error)
    const there = async () => (await BitNet.cache.list())[0]?.bytes ?? 0
    // Read as well: a private window keeps blobs in memory, and one that is still on its way dies with the worker.
    while (await there() < bytes || (await BitNet.cache.verify(path)).bytes < await there()) {
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    abort.abort(new Error('enough'))
    return (await loading).message
  }, [path, bytes] as const)

/** The whole model is stored, and is the model. */
const expectWhole = async (page: Page, path: string, url: string) => {
  await expectGolden(page)
  const files = await stored(page)
  expect(files.map(({ url, bytes, complete }) => ({ url, bytes, complete }))).toEqual([{ url, bytes: SIZE, complete: true }])
  await load(page, { cache: 'only' }, path)
  await expectGolden(page)
}

test('after an abort, only what is missing is fetched', async ({ harness }) => {
  const { path, url, script, asked } = await play(harness, halfway())
  expect(await breakOff(harness, path)).toBe('enough')
  const [file] = await stored(harness)
  expect(file).toMatchObject({ url, complete: false, total: SIZE })
  expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)).code).toBe('not-cached')
  await script({})
  const { notes } = await loadAndTell(harness, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: expect.any(Number) }])
  const { bytes } = notes[0] as { bytes: number }
  expect(bytes).toBeGreaterThanOrEqual(file!.bytes)
  const requests = await asked()
  expect(sent(requests)).toBe(SIZE - bytes)
  // Each under the condition that it is still the same file.
  expect(requests.every(({ status, range, ifRange }) => status === 206 && range && ifRange === `"${SIZE}"`)).toBe(true)
  await expectWhole(harness, path, url)
})

for (const [what, end] of Object.entries({
  'the page was reloaded': async (page: Page) => { await page.reload() },
  'the page crashed': async (page: Page) => { await page.goto('chrome://crash').catch(() => {}) }
})) {
  test(`after ${what}, only what is missing is fetched`, async ({ harness, browser }) => {
    const first = await open(browser, harness.context())
    const { path, url, script, asked } = await play(harness, halfway())
    void first.page.evaluate(path => { void window.ternlight.BitNet.load(path) }, path)
    // As in `breakOff`.
    const readable = (path: string) => window.ternlight.BitNet.cache.verify(path).then(({ bytes }) => bytes, () => 0)
    await expect.poll(() => harness.evaluate(readable, path), { intervals: [50] }).toBe(HALF)
    await end(first.page)
    await first.page.close()
    await script({})
    const { notes } = await loadAndTell(harness, path)
    const { bytes } = notes.find(({ kind }) => kind === 'resumed') as { bytes: number }
    expect(bytes).toBe(HALF)
    expect(sent(await asked())).toBe(SIZE - HALF)
    await expectWhole(harness, path, url)
  })
}

test('connections that break are gone on with, within one load', async ({ harness }) => {
  const cuts = [0, 200_000, 500_000, 900_000]
  const breaks = cuts.map(cut => ({ cut, hold: cut }))
  const { path, url, asked, go } = await play(harness, { then: [{}, { drop: true }, ...breaks] })
  const loading = loadAndTell(harness, path)
  // The first part, and what the next four bring before they break. A connection that breaks takes along what was not
  // read of it; of what was, nothing is lost.
  const there = MIB + cuts.reduce((sum, cut) => sum + cut)
  await expect.poll(() => harness.evaluate(() => window.told?.loaded), { intervals: [50], timeout: 60_000 }).toBe(there)
  await go()
  const { notes } = await loading
  expect(notes).toEqual([])
  const requests = await asked()
  expect(sent(requests)).toBe(SIZE)
  const starts = requests.map(({ range }) => Number(/=(\d+)/.exec(range!)![1]))
  expect(starts.map(start => start % MIB).filter(Boolean).sort()).toEqual(cuts.filter(Boolean))
  await expectWhole(harness, path, url)
})

test('four parts are fetched at a time', async ({ harness }) => {
  const { path, asked } = await play(harness, { then: [{}, { stall: 0 }, { stall: 0 }, { stall: 0 }, { stall: 0 }], always: {} })
  await loadAndTell(harness, path, { stallTimeout: 1500 })
  const requests = await asked()
  // The first part, then four that nothing came of, and only when those were given up all the others.
  expect(requests.slice(1, 5).map(({ sent }) => sent)).toEqual([0, 0, 0, 0])
  expect(new Set(requests.slice(1, 5).map(({ range }) => range)).size).toBe(4)
  expect(sent(requests)).toBe(SIZE)
  await expectGolden(harness)
})

test('a file that has changed since is fetched anew', async ({ harness }) => {
  const { path, url, script, asked } = await play(harness, halfway({ etag: '"monday"' }))
  await breakOff(harness, path)
  await script({ always: { etag: '"tuesday"' } })
  const { notes } = await loadAndTell(harness, path)
  expect(notes).toEqual([{ kind: 'restarted', why: expect.stringContaining('changed') }])
  const requests = await asked()
  expect(requests[0]).toMatchObject({ status: 200, ifRange: '"monday"' })
  expect(sent(requests.slice(1))).toBe(SIZE)
  await expectWhole(harness, path, url)
  expect((await stored(harness))[0]!.etag).toBe('"tuesday"')
})

test('a Last-Modified vouches for the file where there is no ETag', async ({ harness }) => {
  const way = { etag: null, modified: 'Mon, 01 Jun 2026 10:00:00 GMT' }
  const { path, url, script, asked } = await play(harness, halfway(way))
  await breakOff(harness, path)
  await script({ always: way })
  const { kinds } = await loadAndTell(harness, path)
  expect(kinds).toEqual(['resumed'])
  expect((await asked())[0]).toMatchObject({ status: 206, ifRange: way.modified })
  await expectWhole(harness, path, url)
})

for (const [what, etag] of [['no version', null], ['a weak ETag only', 'W/"a"']] as const) {
  test(`a server that gives ${what} is asked for the whole, and nothing is kept of a part`, async ({ harness }) => {
    const { path, url, script, asked } = await play(harness, { always: { etag, hold: 8 * MIB } })
    await breakOff(harness, path)
    await script({ always: { etag } })
    const { notes } = await loadAndTell(harness, path)
    expect(notes).toContainEqual({ kind: 'not-resumable', why: expect.stringContaining('version') })
    expect(notes.map(({ kind }) => kind)).not.toContain('resumed')
    const requests = await asked()
    expect(requests.at(-1)).toMatchObject({ status: 200, sent: SIZE })
    await expectWhole(harness, path, url)
  })
}

test('a server without ranges: says so, goes on in the same load by reading again, and keeps what is stored', async ({ harness }) => {
  const { path, url, script, asked } = await play(harness, { always: { ranges: false }, then: [{ cut: 5 * MIB }] })
  const { notes } = await loadAndTell(harness, path)
  expect(notes).toEqual([{ kind: 'not-resumable', why: expect.stringContaining('parts') }])
  expect((await asked()).map(({ status, sent }) => [status, sent])).toEqual([[200, 5 * MIB], [200, SIZE]])
  await expectWhole(harness, path, url)
  // What is here of an earlier load is not thrown away for it.
  await harness.evaluate(() => window.ternlight.BitNet.cache.clear())
  await script(halfway())
  await breakOff(harness, path)
  const before = (await stored(harness))[0]!
  await script({ always: { ranges: false } })
  const { kinds } = await loadAndTell(harness, path)
  expect(kinds).toEqual(['not-resumable', 'resumed'])
  await expectWhole(harness, path, url)
  expect((await stored(harness))[0]!.added).toBe(before.added)
})

test('another origin: in parts where it shows what they are, else in one', async ({ harness }) => {
  const other = (path: string) => harness.url().replace(/:(\d+).*/, (_, port) => `:${Number(port) + 1}${path}`)
  const headers = { 'access-control-expose-headers': 'content-range, etag' }
  const open = await play(harness, halfway({ headers }))
  await breakOff(harness, other(open.path))
  await open.script({ always: { headers } })
  const { notes } = await loadAndTell(harness, other(open.path))
  const { bytes } = notes[0] as { bytes: number }
  const requests = await open.asked()
  expect(sent(requests)).toBe(SIZE - bytes)
  // A condition would need the other origin's leave; its ETag is compared instead.
  expect(requests.every(({ status, ifRange }) => status === 206 && !ifRange)).toBe(true)
  await expectWhole(harness, other(open.path), other(open.path))
  await harness.evaluate(() => window.ternlight.BitNet.cache.clear())

  const closed = await play(harness, {})
  const { kinds } = await loadAndTell(harness, other(closed.path))
  expect(kinds).toContain('not-resumable')
  expect((await closed.asked()).at(-1)).toMatchObject({ status: 200, sent: SIZE })
  await expectWhole(harness, other(closed.path), other(closed.path))
})

test('`refresh` fetches everything, and leaves what was there until it is whole', async ({ harness }) => {
  const { path, url, script, asked } = await play(harness, {})
  await load(harness, {}, path)
  const before = (await stored(harness))[0]!
  await script({ always: { drop: true } })
  expect((await failure(harness, `await BitNet.load('${path}', { cache: 'refresh' })`)).code).toBe('network')
  expect(await stored(harness)).toMatchObject([{ url, complete: true, added: before.added }])
  await script({})
  await load(harness, { cache: 'refresh' }, path)
  expect(sent(await asked())).toBe(SIZE)
  await expectWhole(harness, path, url)
  expect((await stored(harness))[0]!.added).toBeGreaterThan(before.added)
})
