// What crosses the border between a page and its worker, with both sides in Node. Workers of browsers
// are in tests/web/worker.spec.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const PKG = new URL('../../pkg/', import.meta.url)
const { postable } = await import(new URL('protocol/source.js', PKG))

test('a stream that cannot be transferred is read to its end, or cancelled when the load is aborted', async t => {
  t.mock.method(globalThis, 'structuredClone', () => { throw new DOMException('not a stream', 'DataCloneError') })
  const made = parts => {
    let why
    const stream = new ReadableStream({
      pull(controller) {
        if (parts > 0) controller.enqueue(new Uint8Array(10))
        else if (parts === 0) controller.close()
        parts -= 1
      },
      cancel(reason) { why = reason }
    })
    return { stream, why: () => why }
  }
  assert.equal((await postable(made(3).stream)).size, 30)
  assert.equal((await postable(made(3).stream, new AbortController().signal)).size, 30)

  const endless = made(Infinity)
  const abort = new AbortController()
  const gathering = postable(endless.stream, abort.signal)
  const reason = new Error('changed my mind')
  setTimeout(() => abort.abort(reason), 10)
  await assert.rejects(gathering, { code: 'io' })
  assert.equal(endless.why(), reason)
})
