// The parts of a file that a server gives, and servers that give others than were asked for.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'

const { ofUrl } = await import(new URL('../../pkg/page/parts.js', import.meta.url))

/** More than is read at a time. */
const FILE = Uint8Array.from({ length: (8 << 20) + 5000 }, (_, n) => n % 251)

/** The answer of a good server to a request for a part. */
const good = ({ headers, method }, file = FILE) => {
  if (method === 'HEAD') return { status: 200, headers: { 'content-length': file.length }, body: '' }
  const [begin, last] = headers.range.match(/\d+/g).map(Number)
  if (begin >= file.length) return { status: 416, headers: {}, body: '' }
  const end = Math.min(last + 1, file.length)
  return {
    status: 206, headers: { 'content-range': `bytes ${begin}-${end - 1}/${file.length}` }, body: file.subarray(begin, end)
  }
}

/** The address of a server that gives the answers of `answer`. */
const serving = async (t, answer) => {
  const server = createServer((request, response) => {
    const { status, headers, body } = answer(request)
    response.writeHead(status, headers)
    // Written in two, the answer has no length of its own.
    response.write(body.slice(0, 1))
    response.end(body.slice(1))
  }).listen(0, 'localhost')
  t.after(() => server.close())
  await once(server, 'listening')
  return new URL(`http://localhost:${server.address().port}/file`)
}

const { signal } = new AbortController()
const FAR = FILE.length - 3000

test('each part has its bytes, of a server that hides which they are too', async t => {
  const hidden = request => {
    const { headers, ...answer } = good(request)
    delete headers['content-range']
    return { ...answer, headers }
  }
  for (const answer of [good, hidden]) {
    let requests = 0
    const parts = await ofUrl(await serving(t, request => {
      requests += 1
      return answer(request)
    }))
    assert.equal(parts.length, FILE.length)
    for (const [begin, end] of [[0, 10], [5000, 9000], [FAR, FILE.length], [FAR + 1, FAR + 2], [0, FILE.length]]) {
      assert.deepEqual(Buffer.compare(await parts.read(begin, end, signal), FILE.subarray(begin, end)), 0, `${begin} to ${end}`)
    }
    // The second part was already here, and so was the fourth. The last one is longer than is read ahead.
    assert.equal(requests, answer === good ? 3 : 4)
  }
})

test('a server that does not give parts is refused, and so is one that does not say how long the file is', async t => {
  for (const [answer, why] of [
    [() => ({ status: 404, headers: {}, body: '' }), /answered 404/],
    [() => ({ status: 200, headers: {}, body: 'GGUF' }), /does not give parts/],
    [({ method }) => ({ status: method === 'HEAD' ? 405 : 206, headers: {}, body: 'GGUF' }), /does not let this page see `Content-Range`/]
  ]) {
    await assert.rejects(ofUrl(await serving(t, answer)), { code: 'http', message: why })
  }
})

test('other bytes than were asked for are refused', async t => {
  for (const [change, why] of [
    [answer => ({ ...answer, headers: { 'content-range': 'bytes 1-9/7000' } }), /other bytes/],
    [answer => ({ ...answer, headers: { 'content-range': `bytes ${FAR}-${FAR}/*` } }), /other bytes/],
    [answer => ({ ...answer, body: Buffer.concat([answer.body, Buffer.from([1])]) }), /more or fewer/],
    [answer => ({ ...answer, body: answer.body.subarray(1) }), /more or fewer/],
    [answer => ({ ...answer, headers: {}, body: answer.body.subarray(1) }), /more or fewer/]
  ]) {
    let isOpen = false
    const parts = await ofUrl(await serving(t, request => isOpen ? change(good(request)) : good(request)))
    isOpen = true
    await assert.rejects(parts.read(FAR, FILE.length, signal), { code: 'http', message: why })
  }
})

test('another file than before is refused, if the server shows that it is one', async t => {
  const headed = more => request => {
    const answer = good(request)
    return { ...answer, headers: { ...answer.headers, ...more } }
  }
  const [monday, tuesday] = ['Mon, 05 Jan 2026 10:00:00 GMT', 'Tue, 06 Jan 2026 10:00:00 GMT']
  for (const [before, after, isOther] of [
    [good, request => good(request, Uint8Array.of(...FILE.subarray(0, 9))), true],
    [good, request => good(request, FILE.subarray(1)), true],
    [headed({ etag: '"a"' }), headed({ etag: '"b"' }), true],
    [headed({ etag: '"a"', 'last-modified': monday }), headed({ etag: '"a"', 'last-modified': tuesday }), false],
    [headed({ etag: 'W/"a"' }), headed({ etag: 'W/"b"' }), false],
    [headed({ etag: 'W/"a"', 'last-modified': monday }), headed({ etag: 'W/"a"', 'last-modified': tuesday }), true],
    [headed({ 'last-modified': monday }), good, false]
  ]) {
    let answer = before
    const parts = await ofUrl(await serving(t, request => answer(request)))
    answer = after
    const reading = parts.read(FAR, FAR + 2, signal)
    if (isOther) await assert.rejects(reading, { code: 'http', message: /has changed/ })
    else assert.deepEqual(await reading, FILE.subarray(FAR, FAR + 2))
  }
})

test('an abort ends a request, and a server that is not there is a failure of the network', async t => {
  const stop = new AbortController()
  const address = await serving(t, () => {
    stop.abort(new Error('enough'))
    return { status: 206, headers: {}, body: 'GGUF' }
  })
  await assert.rejects(ofUrl(address, stop.signal), /enough/)
  await assert.rejects(ofUrl(new URL('http://localhost:1/file')), { code: 'network' })
})
