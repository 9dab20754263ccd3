// Servers and networks as they are: each fault ends in the model, token by token, or in an error
// with its code; and nothing half-fetched is trusted later.
import { statSync } from 'node:fs'
import { expect, expectGolden, failure, load, loadAndTell, MODEL, play, stored, test } from './harness'
import type { Asked, Way } from './harness'

const SIZE = statSync(`.${MODEL}`).size
const MIB = 1 << 20

const sent = (asked: Asked[]) => asked.reduce((sum, { sent }) => sum + sent, 0)

interface Fault {
  always?: Way
  then?: Way[]
  /** What the page is told: kinds of notes, in order. */
  notes: string[]
  /**
   * Bytes that the server sends at most; those of the file, where nothing is said. More where it is
   * stopped in the middle of an answer: what it has handed to the system by then counts as sent.
   */
  most?: number
  /** Requests that it sees. */
  requests?: number
  /** Bytes in the file, if not those of the model. */
  size?: number
  stallTimeout?: number
}

/** A plain request for the whole, after an attempt that got a first part or none. */
const ONCE_MORE = SIZE + 5 * MIB

const mended: Record<string, Fault> = {
  'a server as it should be': { notes: [], requests: 10 },
  'a connection that is refused three times': { then: Array(6).fill({ drop: true }), notes: [], requests: 16 },
  '503 twice': { then: [{ status: 503 }, { status: 503 }], notes: [], requests: 12 },
  '503 in the middle': { then: [{}, {}, { status: 503 }, {}, { status: 500 }], notes: [], requests: 12 },
  '429 with a Retry-After of a second': { then: [{}, { status: 429, headers: { 'retry-after': '1' } }], notes: [], requests: 11 },
  'a stall in the middle of a part': { then: [{}, { stall: 300_000 }, {}, { stall: 0 }], stallTimeout: 1000, notes: [], requests: 12 },
  'a stall before the first byte': { then: [{ stall: 0 }], stallTimeout: 1000, notes: [], requests: 11 },
  'ranges that are ignored': { always: { ranges: false }, notes: ['not-resumable'], requests: 1 },
  'the wrong range': { always: { shift: 7 }, notes: ['restarted', 'not-resumable'], most: ONCE_MORE },
  'the wrong range, later': { then: [{}, {}, { shift: 7 }], always: {}, notes: ['restarted', 'not-resumable', 'resumed'], most: ONCE_MORE },
  'a Content-Range that lies': { always: { contentRange: `bytes 0-99/${SIZE}` }, notes: ['restarted', 'not-resumable'], most: ONCE_MORE },
  'a Content-Range that is nonsense': { always: { contentRange: 'bytes who knows' }, notes: ['restarted', 'not-resumable'], most: ONCE_MORE },
  'a Content-Range of a file of nine petabytes': { always: { contentRange: 'bytes 0-1048575/9007199254740991' }, notes: ['restarted', 'not-resumable'], most: ONCE_MORE },
  '416 to the first request': { then: [{ status: 416 }], notes: ['restarted', 'not-resumable'], requests: 2 },
  '416 in the middle': { then: [{}, {}, { status: 416 }], notes: ['restarted', 'not-resumable', 'resumed'], most: ONCE_MORE },
  'an ETag that changes once': { then: [{ etag: '"a"' }, { etag: '"a"' }], always: { etag: '"b"' }, notes: ['restarted'], most: 5 * SIZE },
  'no Content-Length': { always: { length: null, ranges: false }, notes: ['not-resumable'], requests: 1 },
  'no Content-Length, with ranges': { always: { length: null }, notes: [], requests: 10 },
  gzip: { always: { gzip: true, ranges: false }, notes: ['not-resumable'], most: 4 * SIZE },
  'gzip, whatever is asked for': { always: { gzip: true }, notes: ['not-resumable'], most: 4 * SIZE },
  'a part that is cut short': { then: [{}, { cut: 100_000, length: 100_000 }], notes: [], most: SIZE + MIB },
  'a file that grows while it is read': {
    then: Array(3).fill({ size: SIZE }), always: { size: SIZE + 64 }, notes: ['restarted'], most: 5 * SIZE, size: SIZE + 64
  }
}

for (const [what, { always, then, notes, size = SIZE, most = size, requests, stallTimeout }] of Object.entries(mended)) {
  test(`mended: ${what}`, async ({ harness }) => {
    const { path, url, asked } = await play(harness, { always, then })
    const found = await loadAndTell(harness, path, stallTimeout ? { stallTimeout } : {})
    await expectGolden(harness)
    expect(found.kinds).toEqual(notes)
    const fractions = found.reports.map(({ fraction }) => fraction)
    expect(fractions).toEqual([...fractions].sort((a, b) => a - b))
    const log = await asked()
    expect(sent(log)).toBeLessThanOrEqual(most)
    if (requests !== undefined) expect(log.length).toBe(requests)
    expect((await stored(harness)).map(({ url, bytes, complete }) => [url, bytes, complete])).toEqual([[url, size, true]])
    expect(await harness.evaluate(path => window.ternlight.BitNet.cache.verify(path), path)).toEqual({ whole: true, bytes: size, damagedBytes: 0 })
  })
}

test('Retry-After is obeyed, in seconds and as a date', async ({ harness }) => {
  for (const wait of ['2', new Date(Date.now() + 4000).toUTCString()]) {
    const { path } = await play(harness, { then: [{ status: 429, headers: { 'retry-after': wait } }] })
    const start = Date.now()
    const until = /^\d+$/.test(wait) ? start + 2000 : Date.parse(wait)
    const first = await harness.evaluate(path => new Promise<number>(resolve => {
      void window.ternlight.BitNet.load(path, { cache: 'off', onProgress: ({ loaded }) => { if (loaded > 0) resolve(Date.now()) } })
    }), path)
    expect(first).toBeGreaterThanOrEqual(until)
  }
})

test('a redirect, each time to another place', async ({ harness }) => {
  // The bytes are asked for at an address of their own for each part, as signed addresses are.
  const target = await play(harness, {})
  const { path, url, asked } = await play(harness, {
    then: Array.from({ length: 40 }, (_, index) => ({ redirect: `${target.path}?signature=${index}` }))
  })
  const { kinds } = await loadAndTell(harness, path)
  expect(kinds).toEqual([])
  expect((await asked()).length).toBe(10)
  expect(sent(await target.asked())).toBe(SIZE)
  await expectGolden(harness)
  expect((await stored(harness)).map(({ url, complete }) => [url, complete])).toEqual([[url, true]])
})

/** What cannot be mended: the error's code, and whether what came is good for a later attempt. */
const refused: Record<string, { always: Way, then?: Way[], code: string, message: RegExp, kept?: boolean, stallTimeout?: number }> = {
  'a file of no bytes': { always: { size: 0 }, code: 'bad-gguf', message: /GGUF/ },
  'a file that is still growing': { always: { size: SIZE - 64 }, code: 'bad-gguf', message: /cut off/ },
  'a file cut to half': { always: { size: SIZE >> 1 }, code: 'bad-gguf', message: /./ },
  'a server that always answers 503': { always: { status: 503 }, code: 'http', message: /503/ },
  '429 for a day': { always: { status: 429, headers: { 'retry-after': '86400' } }, code: 'http', message: /429/ },
  'no connection': { always: { drop: true }, code: 'network', message: /could not read/ },
  'a server that dies on the way': { always: { status: 503, headers: { 'retry-after': '86400' } }, then: Array(5).fill({ status: 0 }), code: 'http', message: /503/, kept: true },
  'an ETag that changes with each connection, and connections that break': {
    always: { cut: 2 * MIB }, then: Array.from({ length: 60 }, (_, index) => ({ etag: `"${index}"` })),
    code: 'network', message: /changed.*again/
  },
  'no version, and connections that break': { always: { cut: 3 * MIB, etag: null, ranges: false }, code: 'network', message: /connection broke.*again/ },
  'a length that is too long': { always: { length: SIZE + 1000, ranges: false, etag: null }, code: 'network', message: /./, stallTimeout: 1000 },
  'a length beyond all bounds': { always: { length: 2 ** 50, ranges: false }, code: 'network', message: /1125899906842624 bytes/ }
}

for (const [what, { always, then, code, message, kept = false, stallTimeout = 15_000 }] of Object.entries(refused)) {
  test(`refused: ${what}`, async ({ harness }) => {
    const { path, script, asked } = await play(harness, { always, then })
    const found = await failure(harness, `await BitNet.load('${path}', { stallTimeout: ${stallTimeout} })`)
    expect(found).toMatchObject({ code, message: expect.stringMatching(message) })
    const files = await stored(harness)
    expect(files.length).toBe(kept ? 1 : 0)
    expect(files.some(({ complete }) => complete)).toBe(false)
    expect((await failure(harness, `await BitNet.load('${path}', { cache: 'only' })`)).code).toBe('not-cached')
    // The server is well again: what was good is not fetched again, and what was not is.
    await script({})
    await loadAndTell(harness, path)
    expect(sent(await asked())).toBe(SIZE - (files[0]?.bytes ?? 0))
    await expectGolden(harness)
  })
}

test('a response that ends early, as a service worker may make one, is told with the length of the file', async ({ harness }) => {
  await harness.evaluate(() => {
    const fetched = globalThis.fetch
    Object.assign(window, { requests: 0 })
    globalThis.fetch = async (resource, init) => {
      if (!String(resource).endsWith('/early.gguf')) return fetched(resource, init)
      ;(window as unknown as { requests: number }).requests++
      return new Response('', { headers: { 'content-length': '9000000', etag: '"a"' } })
    }
  })
  const found = await failure(harness, `await BitNet.load('/early.gguf', { worker: false })`)
  expect(found).toMatchObject({ code: 'network', message: expect.stringContaining('after 0 of 9000000 bytes') })
  // Of which not a byte has come, no more than four times.
  expect(await harness.evaluate(() => (window as unknown as { requests: number }).requests)).toBe(4)
})
