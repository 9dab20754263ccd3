// A download that broke off goes on where it was, if that is safe; and its bytes are the model's,
// all of them.
import { createHash } from 'node:crypto'
import type { Page } from '@playwright/test'
import {
  asked, expect, expectRandomModel, heldHalfway, load, loadFailure, loadFast, loadReporting, makeFast, MIB,
  open, scripted, sent, SIZE, storedModels, test, type Reply
} from './harness'
import { spreadModel, WIDE_SIZE } from './models.mjs'

test.use({ backend: 'cpu' })

/** The bytes that a held server has sent. */
const HALF = 5 * MIB

/** Loads until so much is stored, then aborts. */
const breakOff = (page: Page, path: string, bytes = HALF) =>
  page.evaluate(async ([path, bytes]) => {
    const { cache } = window.tritloom.BitNet
    const abort = new AbortController()
    const loading = window.load(path, { signal: abort.signal }).catch(error => error)
    const stored = async () => (await cache.list())[0]?.bytes ?? 0
    // Read it too: a private window keeps blobs in memory, and loses one that is still being
    // written with its worker.
    while (await stored() < bytes || (await cache.verify(path)).bytes < await stored()) {
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    abort.abort(new Error('enough'))
    return (await loading).message
  }, [path, bytes] as const)

/** The whole model is stored, and is the model. */
const expectWhole = async (page: Page, path: string, url: string) => {
  await expectRandomModel(page)
  const files = await storedModels(page)
  expect(files.map(({ url, bytes, complete }) => ({ url, bytes, complete }))).toEqual([{ url, bytes: SIZE, complete: true }])
  await load(page, { cache: 'only' }, path)
  await expectRandomModel(page)
}

test('after an abort, only what is missing is fetched', { tag: '@quick' }, async ({ shared }) => {
  const { path, url, rewrite, requests } = await scripted(shared, heldHalfway())
  expect(await breakOff(shared, path)).toBe('enough')
  const [file] = await storedModels(shared)
  expect(file).toMatchObject({ url, complete: false, total: SIZE })
  expect((await loadFailure(shared, path, { cache: 'only' })).code).toBe('not-cached')
  await rewrite({})
  const { notes } = await loadReporting(shared, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: expect.any(Number) }])
  const { bytes } = notes[0] as { bytes: number }
  expect(bytes).toBeGreaterThanOrEqual(file!.bytes)
  const seen = await requests()
  expect(sent(seen)).toBe(SIZE - bytes)
  // Each on the condition that it is still the same file.
  expect(seen.every(({ status, range, ifRange }) => status === 206 && range && ifRange === `"${SIZE}"`)).toBe(true)
  await expectWhole(shared, path, url)
})

for (const [what, end] of Object.entries({
  'the page was reloaded': async (page: Page) => { await page.reload() },
  'the page crashed': async (page: Page) => { await page.goto('chrome://crash').catch(() => {}) }
})) {
  test(`after ${what}, only what is missing is fetched`, async ({ shared, browser }) => {
    const first = await open(browser, shared.context(), 'cpu')
    const { path, url, rewrite, requests } = await scripted(shared, heldHalfway())
    void first.page.evaluate(path => { void window.load(path) }, path)
    // As in `breakOff`.
    const readable = (path: string) => window.tritloom.BitNet.cache.verify(path).then(({ bytes }) => bytes, () => 0)
    await expect.poll(() => shared.evaluate(readable, path), { intervals: [50] }).toBe(HALF)
    await end(first.page)
    await first.page.close()
    await rewrite({})
    const { notes } = await loadReporting(shared, path)
    const { bytes } = notes.find(({ kind }) => kind === 'resumed') as { bytes: number }
    expect(bytes).toBe(HALF)
    expect(sent(await requests())).toBe(SIZE - HALF)
    await expectWhole(shared, path, url)
  })
}

test('within one load, a connection that breaks is made again for the rest', async ({ shared }) => {
  const cuts = [0, 200_000, 500_000, 900_000]
  const breaks = cuts.map(cut => ({ cut, hold: cut }))
  const { path, url, requests, release } = await scripted(shared, { then: [{}, { drop: true }, ...breaks] })
  const loading = loadReporting(shared, path)
  // The first part, and what the next four send before they break. The browser loses what it has
  // not read by then, so the test waits until it has read everything.
  const read = MIB + cuts.reduce((sum, cut) => sum + cut)
  await expect.poll(() => shared.evaluate(() => window.progress?.loaded), { intervals: [50], timeout: 60_000 }).toBe(read)
  await release()
  const { notes } = await loading
  expect(notes).toEqual([])
  const seen = await requests()
  expect(sent(seen)).toBe(SIZE)
  const starts = seen.map(({ range }) => Number(/=(\d+)/.exec(range!)![1]))
  expect(starts.map(start => start % MIB).filter(Boolean).sort()).toEqual(cuts.filter(Boolean))
  await expectWhole(shared, path, url)
})

test('four parts are fetched at a time', async ({ shared }) => {
  const { path, requests } = await scripted(shared, { then: [{}, { stall: 0 }, { stall: 0 }, { stall: 0 }, { stall: 0 }] })
  await loadReporting(shared, path, { stallTimeout: 1500 })
  const seen = await requests()
  // The first part, then four that stall, and all others only when those four are given up.
  expect(seen.slice(1, 5).map(({ sent }) => sent)).toEqual([0, 0, 0, 0])
  expect(new Set(seen.slice(1, 5).map(({ range }) => range)).size).toBe(4)
  expect(sent(seen)).toBe(SIZE)
  await expectRandomModel(shared)
})

test('on a fast connection a request asks for several parts, and one that breaks is made again for the rest', async ({ shared }) => {
  const part = 4 * MIB
  // Shorter than a request of several parts.
  const then = Array<Reply>(10).fill({ cut: part + MIB })
  const { path, requests } = await scripted(shared, { then }, '/wide.gguf')
  await makeFast(shared, 2)
  const { notes } = await loadReporting(shared, path, { worker: false, cache: 'off' })
  await shared.evaluate(() => window.fast.undo())
  expect(notes).toEqual([])
  await expectRandomModel(shared)
  const seen = await requests()
  expect(Math.max(...seen.map(request => asked(request)[1]))).toBe(4 * part)
  expect(seen.some(request => (asked(request)[0] - MIB) % part === MIB)).toBe(true)
  expect(sent(seen)).toBe(WIDE_SIZE)
})

for (const [what, reply] of Object.entries<Reply>({
  'breaks off': { cut: 5 * MIB },
  'is refused': { status: 403 },
  'is of another version': { etag: '"tuesday"', cut: 0 },
  // Two seconds of waiting are a quarter of the stall timeout.
  'stalls': { stall: 5 * MIB }
})) {
  test(`on a fast connection two threads make the requests, and what ${what} is asked for without them`, async ({ shared }) => {
    const seen = await loadFast(shared, [reply, reply])
    const broken = seen.filter(request => request.sent < asked(request)[1])
    expect(broken.map(request => asked(request)[1])).toEqual([8 * MIB, 8 * MIB])
    // The browser may lose what it had not read when a connection broke.
    const again = sent(seen) - WIDE_SIZE
    expect(again).toBeGreaterThanOrEqual(0)
    expect(again).toBeLessThanOrEqual(sent(broken) / 2)
  })
}

test('a file that has changed since is fetched anew', async ({ shared }) => {
  const { path, url, rewrite, requests } = await scripted(shared, heldHalfway({ etag: '"monday"' }))
  await breakOff(shared, path)
  await rewrite({ always: { etag: '"tuesday"' } })
  const { notes } = await loadReporting(shared, path)
  expect(notes).toEqual([{ kind: 'restarted', why: expect.stringContaining('changed') }])
  const seen = await requests()
  expect(seen[0]).toMatchObject({ status: 200, ifRange: '"monday"' })
  expect(sent(seen.slice(1))).toBe(SIZE)
  await expectWhole(shared, path, url)
  expect((await storedModels(shared))[0]!.etag).toBe('"tuesday"')
})

test('a Last-Modified vouches for the file where there is no ETag', async ({ shared }) => {
  const reply = { etag: null, modified: 'Mon, 01 Jun 2026 10:00:00 GMT' }
  const { path, url, rewrite, requests } = await scripted(shared, heldHalfway(reply))
  await breakOff(shared, path)
  await rewrite({ always: reply })
  const { kinds } = await loadReporting(shared, path)
  expect(kinds).toEqual(['resumed'])
  expect((await requests())[0]).toMatchObject({ status: 206, ifRange: reply.modified })
  await expectWhole(shared, path, url)
})

for (const [what, etag] of [['no version', null], ['only a weak ETag', 'W/"a"']] as const) {
  test(`from a server that gives ${what}, a broken download is not gone on with`, async ({ shared }) => {
    const { path, url, rewrite, requests } = await scripted(shared, { always: { etag, hold: 8 * MIB } })
    await breakOff(shared, path)
    await rewrite({ always: { etag } })
    const { notes, kinds } = await loadReporting(shared, path)
    expect(notes).toContainEqual({ kind: 'not-resumable', why: expect.stringContaining('version') })
    expect(kinds).not.toContain('resumed')
    expect((await requests()).at(-1)).toMatchObject({ status: 200, sent: SIZE })
    await expectWhole(shared, path, url)
  })
}

test('a server without ranges: the load says so, reads again when the connection breaks, and keeps what is stored', async ({ shared }) => {
  const { path, url, rewrite, requests } = await scripted(shared, { always: { ranges: false }, then: [{ cut: 5 * MIB }] })
  const { notes } = await loadReporting(shared, path)
  expect(notes).toEqual([{ kind: 'not-resumable', why: expect.stringContaining('parts') }])
  expect((await requests()).map(({ status, sent }) => [status, sent])).toEqual([[200, 5 * MIB], [200, SIZE]])
  await expectWhole(shared, path, url)
  // The bytes that an earlier load has stored are used.
  await shared.evaluate(() => window.tritloom.BitNet.cache.clear())
  await rewrite(heldHalfway())
  await breakOff(shared, path)
  const before = (await storedModels(shared))[0]!
  await rewrite({ always: { ranges: false } })
  const { kinds } = await loadReporting(shared, path)
  expect(kinds).toEqual(['not-resumable', 'resumed'])
  await expectWhole(shared, path, url)
  expect((await storedModels(shared))[0]!.added).toBe(before.added)
})

test('another origin: in parts if the page may see the headers, else in one', async ({ shared }) => {
  const other = (path: string) => shared.url().replace(/:(\d+).*/, (_, port) => `:${Number(port) + 1}${path}`)
  const headers = { 'access-control-expose-headers': 'content-range, etag' }
  const open = await scripted(shared, heldHalfway({ headers }))
  await breakOff(shared, other(open.path))
  await open.rewrite({ always: { headers } })
  const { notes } = await loadReporting(shared, other(open.path))
  const { bytes } = notes[0] as { bytes: number }
  const seen = await open.requests()
  expect(sent(seen)).toBe(SIZE - bytes)
  // A condition would need the other origin's leave, so its ETag is compared instead.
  expect(seen.every(({ status, ifRange }) => status === 206 && !ifRange)).toBe(true)
  await expectWhole(shared, other(open.path), other(open.path))
  await shared.evaluate(() => window.tritloom.BitNet.cache.clear())

  const closed = await scripted(shared)
  const { kinds } = await loadReporting(shared, other(closed.path))
  expect(kinds).toContain('not-resumable')
  expect((await closed.requests()).at(-1)).toMatchObject({ status: 200, sent: SIZE })
  await expectWhole(shared, other(closed.path), other(closed.path))
})

test('`refresh` fetches everything, and keeps what was stored until that is whole', async ({ shared }) => {
  const { path, url, rewrite, requests } = await scripted(shared)
  await load(shared, {}, path)
  const before = (await storedModels(shared))[0]!
  await rewrite({ always: { drop: true } })
  expect((await loadFailure(shared, path, { cache: 'refresh' })).code).toBe('network')
  expect(await storedModels(shared)).toMatchObject([{ url, complete: true, added: before.added }])
  await rewrite({})
  await load(shared, { cache: 'refresh' }, path)
  expect(sent(await requests())).toBe(SIZE)
  await expectWhole(shared, path, url)
  expect((await storedModels(shared))[0]!.added).toBeGreaterThan(before.added)
})

test('`revalidate` fetches a stored model only if the server has another', async ({ shared }) => {
  const { path, url, rewrite, requests } = await scripted(shared)
  await load(shared, {}, path)
  await rewrite({})
  const revalidated = () => loadReporting(shared, path, { cache: 'revalidate' })
  expect((await revalidated()).notes).toEqual([])
  expect(sent(await requests())).toBe(1)
  for (const always of [{ drop: true }, { status: 404 }, { etag: null }]) {
    await rewrite({ always })
    expect((await revalidated()).notes).toEqual([{ kind: 'not-revalidated', why: expect.any(String) }])
    await expectRandomModel(shared)
    expect(await loadFailure(shared, path, { cache: 'revalidate', strict: true })).toEqual({
      code: 'network', message: expect.stringContaining('strict')
    })
  }
  await rewrite({ always: { etag: '"another"' } })
  expect((await revalidated()).notes).toEqual([])
  expect(sent(await requests())).toBe(SIZE + 1)
  await expectWhole(shared, path, url)
  expect(await storedModels(shared)).toMatchObject([{ etag: '"another"' }])
})

const integrity = `sha256-${createHash('sha256').update(spreadModel()).digest('base64')}`
for (const [what, options, bytesToAsk] of [
  ['`revalidate` finds on the server', { cache: 'revalidate' }, 1], ['has the wanted hash', { integrity }, 0]
] as const) {
  test(`another version, which ${what}, is resumed while the old one is still stored`, async ({ shared }) => {
    const { path, url, rewrite, requests } = await scripted(shared, { always: { size: SIZE + MIB } })
    await load(shared, {}, path)
    await rewrite({ then: Array<Reply>(5 + bytesToAsk).fill({ hold: null }), always: { hold: 0 } })
    await shared.evaluate(async ([path, options, bytes]) => {
      const abort = new AbortController()
      const loading = window.load(path, { ...options, signal: abort.signal }).catch(error => error)
      const begun = async () => (await window.tritloom.BitNet.cache.list()).find(({ complete }) => !complete)
      while ((await begun())?.bytes !== bytes) await new Promise(resolve => setTimeout(resolve, 20))
      abort.abort()
      await loading
    }, [path, options, HALF] as const)
    await rewrite({})
    const { notes } = await loadReporting(shared, path, options)
    expect(notes).toContainEqual({ kind: 'resumed', bytes: HALF })
    expect(sent(await requests())).toBe(SIZE - HALF + bytesToAsk)
    await expectWhole(shared, path, url)
  })
}
