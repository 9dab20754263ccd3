// The border between a page and its worker, with both sides in Node. Workers of browsers are in
// tests/web/worker.spec.ts.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'

const PKG = new URL('../../pkg/', import.meta.url)
const { BitNetError } = await import(new URL('index.js', PKG))
const { fromFailure, toFailure } = await import(new URL('protocol/messages.js', PKG))
const { postable } = await import(new URL('protocol/source.js', PKG))

test('errors keep their code, their message and the text of their cause on the way', () => {
  const over = error => {
    const { name, code, message, cause } = fromFailure(structuredClone(toFailure(error)))
    return { name, code, message, cause }
  }
  const name = 'BitNetError'
  const plain = new BitNetError('network', 'no route')
  assert.deepEqual(over(plain), { name, code: 'network', message: 'no route', cause: undefined })
  const caused = new BitNetError('network', 'no route', { cause: new TypeError('Failed to fetch') })
  assert.deepEqual(over(caused), { name, code: 'network', message: 'no route', cause: 'TypeError: Failed to fetch' })
  const foreign = over(new RangeError('out of range'))
  assert.deepEqual(foreign.cause, 'RangeError: out of range')
  assert.equal(foreign.code, 'internal')
})

test('a stream that cannot be transferred is read to its end, or cancelled when the load is aborted', async t => {
  t.mock.method(globalThis, 'structuredClone', () => { throw new DOMException('not a stream', 'DataCloneError') })
  const made = parts => {
    let why
    const stream = new ReadableStream({
      async pull(controller) {
        await new Promise(setImmediate)
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

test('a crash of the crate while no call runs is told to the page', async t => {
  const listeners = new Map()
  const posted = []
  Object.assign(globalThis, {
    addEventListener: (type, listener) => listeners.set(type, listener),
    postMessage: message => posted.push(message)
  })
  t.mock.method(globalThis, 'fetch', async url =>
    new Response(await readFile(url), { headers: { 'content-type': 'application/wasm' } }))
  t.after(() => {
    delete globalThis.addEventListener
    delete globalThis.postMessage
  })
  await import(new URL('protocol/answer.js', PKG))
  const { ready } = await import(new URL('crate/wasm.js', PKG))
  const { callBack } = await import(new URL('tritloom.js', PKG))
  await ready()

  const failed = error => listeners.get('error')({ error, message: `Uncaught ${error}` })
  failed(new Error('of the page'))
  failed(new WebAssembly.RuntimeError('of another module'))
  assert.deepEqual(posted, [])
  let error
  callBack(() => { error = new Error('through the crate') })
  failed(error)
  assert.deepEqual(posted, [{
    kind: 'fatal', isOurs: true,
    error: { code: 'internal', message: 'internal error (please report it, and reload the page): Uncaught Error: through the crate' }
  }])
})

test('a worker moves the values of vectors to the page, and copies none', async t => {
  const names = ['addEventListener', 'postMessage']
  const before = names.map(name => [name, Object.getOwnPropertyDescriptor(globalThis, name)])
  t.after(() => before.forEach(([name, own]) => own ? Object.defineProperty(globalThis, name, own) : delete globalThis[name]))
  const posted = new Promise(resolve => {
    Object.assign(globalThis, {
      addEventListener() {},
      postMessage: (message, transfer) => { if (message.method === 'embed') resolve({ message, transfer }) }
    })
  })
  const { LocalTransport } = await import(new URL('protocol/local-transport.js', PKG))
  const embedded = { values: Float32Array.of(1, 2), tokens: 3, cut: 0 }
  t.mock.method(LocalTransport.prototype, 'load', async () => ({}))
  t.mock.method(LocalTransport.prototype, 'call', async () => embedded)
  const { take } = await import(new URL('protocol/answer.js', PKG))
  take({ kind: 'call', id: 1, method: 'load', args: ['x', {}], aborted: false })
  await new Promise(setImmediate)
  take({ kind: 'call', id: 2, method: 'embed', args: [['a'], {}], aborted: false })
  const { message, transfer } = await posted
  assert.deepEqual([message.result, transfer], [embedded, [embedded.values.buffer]])
})
