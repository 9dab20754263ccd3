// Servers and networks as they are: a load ends with the model, whole, or with an error and its
// code. Nothing that came damaged is trusted later.
import {
  expect, expectNeverBack, expectRandomModel, failure, loadFailure, loadReporting, MIB, scripted,
  sent, SIZE, storedModels, test
} from './harness'
import type { Reply } from './harness'

test.use({ backend: 'cpu' })

interface Fault {
  always?: Reply
  then?: Reply[]
  /** The kinds of the notes that the page gets, in order. */
  notes: string[]
  /**
   * The most bytes that the server sends; the file's size by default. It is more where an answer is
   * broken off: what the server has handed to the system by then counts as sent.
   */
  maxSent?: number
  /** Requests that the server sees. */
  requests?: number
  /** The loader may get the whole file in one answer, and gives that up. It does not count. */
  maybeWhole?: boolean
  /** Bytes in the file, if not those of the model. */
  size?: number
  stallTimeout?: number
}

/** A plain request for the whole file, after an attempt that got a first part or none. */
const ONCE_MORE = SIZE + 5 * MIB
/** The same after an attempt that got two parts, while four more were on their way. */
const AFTER_SOME = SIZE + 7 * MIB

const overcome: Record<string, Fault> = {
  'a server without faults': { notes: [], requests: 10 },
  // After a refusal the loader also tries without a range: that may be the first request that is answered.
  'six connections that are refused': { then: Array(6).fill({ drop: true }), notes: [], requests: 16, maybeWhole: true },
  '503 twice': { then: [{ status: 503 }, { status: 503 }], notes: [], requests: 12 },
  '503 in the middle': { then: [{}, {}, { status: 503 }, {}, { status: 500 }], notes: [], requests: 12 },
  '429 with a Retry-After of a second': {
    then: [{}, { status: 429, headers: { 'retry-after': '1' } }], notes: [], requests: 11
  },
  'a stall in the middle of a part': {
    then: [{}, { stall: 300_000 }, {}, { stall: 0 }], stallTimeout: 1000, notes: [], requests: 12
  },
  'a stall before the first byte': { then: [{ stall: 0 }], stallTimeout: 1000, notes: [], requests: 11 },
  'ranges that are ignored': { always: { ranges: false }, notes: ['not-resumable'], requests: 1 },
  'the wrong range': { always: { shift: 7 }, notes: ['restarted', 'not-resumable'], maxSent: ONCE_MORE },
  'the wrong range, later': {
    then: [{}, {}, { shift: 7 }], always: {}, notes: ['restarted', 'not-resumable', 'resumed'], maxSent: AFTER_SOME
  },
  'a Content-Range of another range': {
    always: { contentRange: `bytes 0-99/${SIZE}` }, notes: ['restarted', 'not-resumable'], maxSent: ONCE_MORE
  },
  'a Content-Range that is no range': {
    always: { contentRange: 'bytes who knows' }, notes: ['restarted', 'not-resumable'], maxSent: ONCE_MORE
  },
  'a Content-Range of a file of nine petabytes': {
    always: { contentRange: 'bytes 0-1048575/9007199254740991' }, notes: ['restarted', 'not-resumable'], maxSent: ONCE_MORE
  },
  '416 to the first request': { then: [{ status: 416 }], notes: ['restarted', 'not-resumable'], requests: 2 },
  '416 in the middle': {
    then: [{}, {}, { status: 416 }], notes: ['restarted', 'not-resumable', 'resumed'], maxSent: AFTER_SOME
  },
  'an ETag that changes once': {
    then: [{ etag: '"a"' }, { etag: '"a"' }], always: { etag: '"b"' }, notes: ['restarted'], maxSent: 5 * SIZE
  },
  'no Content-Length': { always: { length: null, ranges: false }, notes: ['not-resumable'], requests: 1 },
  'no Content-Length, with ranges': { always: { length: null }, notes: [], requests: 10 },
  gzip: { always: { gzip: true, ranges: false }, notes: ['not-resumable'], maxSent: 4 * SIZE },
  'gzip that the load did not ask for': { always: { gzip: true }, notes: ['not-resumable'], maxSent: 4 * SIZE },
  'a part that is cut short': { then: [{}, { cut: 100_000, length: 100_000 }], notes: [], maxSent: SIZE + MIB },
  'a file that grows while it is read': {
    then: Array(3).fill({ size: SIZE }), always: { size: SIZE + 64 }, notes: ['restarted'], maxSent: 5 * SIZE, size: SIZE + 64
  }
}

for (const [what, fault] of Object.entries(overcome)) {
  const { always, then, notes, size = SIZE, maxSent = size, requests, maybeWhole, stallTimeout } = fault
  test(`the model loads despite ${what}`, async ({ shared }) => {
    const server = await scripted(shared, { always, then })
    const { kinds, reports } = await loadReporting(shared, server.path, stallTimeout ? { stallTimeout } : {})
    await expectRandomModel(shared)
    expect(kinds).toEqual(notes)
    expectNeverBack(reports)
    const seen = (await server.requests()).filter(({ status }) => !(maybeWhole && status === 200))
    expect(sent(seen)).toBeLessThanOrEqual(maxSent)
    if (requests !== undefined) expect(seen.length).toBe(requests)
    const stored = await storedModels(shared)
    expect(stored.map(({ url, bytes, complete }) => [url, bytes, complete])).toEqual([[server.url, size, true]])
    const verdict = await shared.evaluate(path => window.tritloom.BitNet.cache.verify(path), server.path)
    expect(verdict).toEqual({ whole: true, bytes: size, damagedBytes: 0 })
  })
}

test('Retry-After is obeyed, in seconds and as a date', async ({ shared }) => {
  for (const wait of ['2', new Date(Date.now() + 4000).toUTCString()]) {
    const { path } = await scripted(shared, { then: [{ status: 429, headers: { 'retry-after': wait } }] })
    const start = Date.now()
    const until = /^\d+$/.test(wait) ? start + 2000 : Date.parse(wait)
    const first = await shared.evaluate(path => new Promise<number>((resolve, reject) => {
      window.load(path, { cache: 'off', onProgress: ({ loaded }) => { if (loaded > 0) resolve(Date.now()) } }).catch(reject)
    }), path)
    expect(first).toBeGreaterThanOrEqual(until)
    await shared.waitForFunction(() => window.model)
  }
})

test('each request may be redirected to another address', async ({ shared }) => {
  // As servers do that sign each address anew.
  const target = await scripted(shared)
  const origin = await scripted(shared, {
    then: Array.from({ length: 40 }, (_, index) => ({ redirect: `${target.path}?signature=${index}` }))
  })
  const { kinds } = await loadReporting(shared, origin.path)
  expect(kinds).toEqual([])
  expect((await origin.requests()).length).toBe(10)
  expect(sent(await target.requests())).toBe(SIZE)
  await expectRandomModel(shared)
  expect((await storedModels(shared)).map(({ url, complete }) => [url, complete])).toEqual([[origin.url, true]])
})

/**
 * A failure that no load overcomes: the error's code, and whether a later load uses the bytes that
 * came.
 */
interface Refusal {
  always: Reply
  then?: Reply[]
  code: string
  message: RegExp
  kept?: boolean
  stallTimeout?: number
}

const refused: Record<string, Refusal> = {
  'a file of no bytes': { always: { size: 0 }, code: 'bad-gguf', message: /GGUF/ },
  'a file that is still growing': { always: { size: SIZE - 64 }, code: 'bad-gguf', message: /cut off/ },
  'a file cut to half': { always: { size: SIZE >> 1 }, code: 'bad-gguf', message: /./ },
  'a server that always answers 503': { always: { status: 503 }, code: 'http', message: /503/ },
  'a Retry-After of a day': {
    always: { status: 429, headers: { 'retry-after': '86400' } }, code: 'http', message: /429/
  },
  'no connection': { always: { drop: true }, code: 'network', message: /could not read/ },
  'a server that dies in the middle': {
    always: { status: 503, headers: { 'retry-after': '86400' } }, then: Array(5).fill({ status: 0 }),
    code: 'http', message: /503/, kept: true
  },
  'an ETag that changes with each connection, and connections that break': {
    always: { cut: 2 * MIB }, then: Array.from({ length: 60 }, (_, index) => ({ etag: `"${index}"` })),
    code: 'network', message: /changed.*again/
  },
  'no version, and connections that break': {
    always: { cut: 3 * MIB, etag: null, ranges: false }, code: 'network', message: /connection broke.*again/
  },
  'a Content-Length that is too long': {
    always: { length: SIZE + 1000, ranges: false, etag: null }, code: 'network', message: /./, stallTimeout: 1000
  },
  'a Content-Length of a petabyte': {
    always: { length: 2 ** 50, ranges: false }, code: 'network', message: /1125899906842624 bytes/
  }
}

for (const [what, { always, then, code, message, kept = false, stallTimeout = 15_000 }] of Object.entries(refused)) {
  test(`a load fails with \`${code}\`: ${what}`, async ({ shared }) => {
    const server = await scripted(shared, { always, then })
    expect(await loadFailure(shared, server.path, { stallTimeout })).toMatchObject({ code, message: expect.stringMatching(message) })
    const stored = await storedModels(shared)
    expect(stored.length).toBe(kept ? 1 : 0)
    expect(stored.some(({ complete }) => complete)).toBe(false)
    expect((await loadFailure(shared, server.path, { cache: 'only' })).code).toBe('not-cached')
    // The server is well again: only what is good is kept.
    await server.rewrite({})
    await loadReporting(shared, server.path)
    expect(sent(await server.requests())).toBe(SIZE - (stored[0]?.bytes ?? 0))
    await expectRandomModel(shared)
  })
}

test('an early end of the response is an error that names the length of the file', async ({ shared }) => {
  // As a service worker may make one.
  await shared.evaluate(() => {
    const { fetch } = globalThis
    Object.assign(window, { requests: 0 })
    globalThis.fetch = async (resource, init) => {
      if (!String(resource).endsWith('/early.gguf')) return fetch(resource, init)
      ;(window as unknown as { requests: number }).requests++
      return new Response('', { headers: { 'content-length': '9000000', etag: '"a"' } })
    }
  })
  const found = await failure(shared, `await load('/early.gguf', { worker: false })`)
  expect(found).toMatchObject({ code: 'network', message: expect.stringContaining('after 0 of 9000000 bytes') })
  // A file that has sent nothing gets four attempts.
  expect(await shared.evaluate(() => (window as unknown as { requests: number }).requests)).toBe(4)
})
