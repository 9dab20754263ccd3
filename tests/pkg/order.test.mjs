// Calls of a model run in the order in which they are made, with what they were given then: on a worker that a test has made.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const load = name => import(new URL(`../../pkg/${name}.js`, import.meta.url))
const { BitNet } = await load('index')
const { VERSION } = await load('protocol/messages')

/** Notes the calls. An embedding has a vector of one value for each text. */
globalThis.Worker = class extends EventTarget {
  calls = []

  postMessage({ kind, id, method, args }) {
    if (kind !== 'call') return
    const results = {
      hello: { version: VERSION }, load: { notes: [] }, setAdapters: '',
      embed: { values: new Float32Array(args[0]?.length), tokens: 0, cut: 0 }, decide: { decisions: [], stats: {} }
    }
    this.calls.push({ method, args: structuredClone(args) })
    const data = { kind: 'result', id, method, result: results[method] }
    setTimeout(() => this.dispatchEvent(new MessageEvent('message', { data })))
  }
}
globalThis.isSecureContext = true

/** A model, and the calls to it. */
const loaded = async () => {
  const worker = new Worker()
  const model = await BitNet.load(new Blob(), { worker })
  worker.calls.length = 0
  return { model, calls: worker.calls }
}
const methodsOf = calls => calls.map(({ method }) => method)

test('no call overtakes an inspection, an embedding or a decision', async () => {
  const { model, calls } = await loaded()
  const ids = Uint32Array.of(1)
  const made = ['inspect', 'logits', 'embed', 'setAdapters', 'inspect', 'embed', 'decide', 'profile']
  await Promise.all([
    model.inspect(ids), model.logits(ids), model.embed(['a'], { pooling: 'mean' }), model.setAdapters([]), model.inspect('a'),
    model.embed(['a']), model.decide('a', { options: ['b'] }), model.profile()
  ])
  assert.deepEqual(methodsOf(calls), made)
  // Others come between the calls of a long embedding.
  calls.length = 0
  await Promise.all([model.embed(Array(300).fill('a')), model.logits(ids)])
  assert.deepEqual(methodsOf(calls), ['embed', 'logits', 'embed'])
})

test('what they are given is that of the time of the call', async () => {
  const { model, calls } = await loaded()
  const all = Uint32Array.from({ length: 3000 }, (_, n) => n)
  const messages = [{ role: 'user', content: 'Hi' }]
  const what = ['candidates']
  const texts = Array.from({ length: 1000 }, (_, n) => all.subarray(3 * n, 3 * n + 3))
  const options = { pooling: 'mean' }
  const made = Promise.all([
    model.inspect(all.subarray(3, 6)), model.inspect(messages, { what }), model.decide('a', { options: what }),
    model.embed(texts, options)
  ])
  all.fill(9)
  messages[0].content = 'Ho'
  messages.push({ role: 'user', content: 'Hi' })
  what.push('attention')
  texts.length = 1
  options.pooling = 'last'
  await made
  const [ofIds, ofMessages, decided, ...embedded] = calls.map(({ args }) => args)
  assert.deepEqual(ofIds, [Uint32Array.of(3, 4, 5), {}])
  assert.deepEqual(ofMessages, [[{ role: 'user', content: 'Hi' }], { what: ['candidates'] }])
  assert.deepEqual(decided, ['a', { options: ['candidates'] }])
  const posted = embedded.flatMap(([texts]) => texts)
  assert.deepEqual(posted.flatMap(ids => [...ids]), Array.from({ length: 3000 }, (_, n) => n))
  assert.ok(posted.every(ids => ids.buffer.byteLength === 12))
  assert.ok(embedded.every(([, { pooling }]) => pooling === 'mean'))
})

test('options that no call can have are refused before anything is computed', async () => {
  const { model, calls } = await loaded()
  for (const call of [options => model.inspect('a', options), options => model.embed(['a'], options)]) {
    for (const [options, name] of [[[], 'options'], [{ signal: 7 }, 'signal']]) {
      await assert.rejects(call(options), { code: 'bad-option', message: new RegExp(`\`${name}\``) })
    }
    await assert.rejects(call({ signal: AbortSignal.abort(new Error('enough')) }), /enough/)
  }
  await assert.rejects(model.inspect('a', { onProgress: 7 }), { code: 'bad-option', message: /`onProgress`/ })
  await assert.rejects(model.inspect('a', { what: () => {} }), { code: 'bad-option' })
  assert.deepEqual(calls, [])
})
