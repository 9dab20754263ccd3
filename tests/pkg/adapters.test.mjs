// Adapters from the page's side, without an engine: where their bytes come from, and which calls they make.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from './answerer.mjs'

const { applying, loadAdapter, setAdapters } = await load('page/adapters')

/** A transport that notes its calls, and gives each adapter the next number. */
const transport = () => {
  const calls = []
  let last = 0
  const call = async (method, args) => {
    calls.push([method, method === 'loadAdapter' ? await args[0].text() : args[0]])
    if (method === 'setAdapters') return args[0].map(({ id }) => id).join('+')
    return method === 'loadAdapter' ? { id: ++last, name: 'a', bytes: 3, ranks: [4, 8], targets: ['attn_q'] } : undefined
  }
  return { calls, call }
}
const queue = job => job()

/** Asserts that `work` fails with `code` and a message that has `fact`. */
const refuses = (work, code, fact) => assert.rejects(work, error => {
  assert.equal(error.code, code)
  assert.ok(error.message.includes(fact), error.message)
  return true
})

test('an adapter comes from bytes, blobs, streams and addresses', async t => {
  const to = transport()
  const fetches = []
  t.mock.method(globalThis, 'fetch', async url => {
    fetches.push(url)
    return new Response('net')
  })
  const sources = [
    new Blob(['abc']), new TextEncoder().encode('abc'), new TextEncoder().encode('abc').buffer, new Blob(['abc']).stream(),
    'https://example.com/a.gguf', new URL('https://example.com/b.gguf'), new Request('https://example.com/c.gguf')
  ]
  for (const source of sources) await loadAdapter(to, queue, source)
  const read = [...Array(4).fill('abc'), ...Array(3).fill('net')]
  assert.deepEqual(to.calls, read.map(text => ['loadAdapter', text]))
  assert.deepEqual(fetches, ['a', 'b', 'c'].map(name => `https://example.com/${name}.gguf`))
})

test('bytes that cannot be had have the codes of a load', async t => {
  const answers = [() => new Response('', { status: 404 }), () => { throw new TypeError('Failed to fetch') }]
  t.mock.method(globalThis, 'fetch', async () => answers.shift()())
  const from = () => loadAdapter(transport(), queue, 'https://example.com/a.gguf')
  await refuses(from(), 'http', '404')
  await refuses(from(), 'network', 'Failed to fetch')
  const why = new Error('enough')
  await assert.rejects(loadAdapter(transport(), queue, new Blob([]), AbortSignal.abort(why)), why)
})

test('adapters are applied by their numbers, and those of other models are refused', async () => {
  const to = transport()
  const [one, two] = [await loadAdapter(to, queue, new Blob(['1'])), await loadAdapter(to, queue, new Blob(['2']))]
  assert.deepEqual({ ...one, dispose: undefined }, { name: 'a', bytes: 3, ranks: [4, 8], targets: ['attn_q'], dispose: undefined })
  const model = { adaptersHash: '' }
  await setAdapters(to, [{ adapter: two, scale: -0.5 }, { adapter: one }], model)
  assert.equal(model.adaptersHash, '2+1')
  assert.deepEqual(to.calls.at(-1), ['setAdapters', [{ id: 2, scale: -0.5 }, { id: 1, scale: 1 }]])
  await setAdapters(to, [], model)
  assert.equal(model.adaptersHash, '')
  assert.deepEqual(to.calls.at(-1), ['setAdapters', []])
  const made = to.calls.length
  await refuses(setAdapters(transport(), [{ adapter: one }]), 'bad-option', 'adapters[0].adapter')
  await refuses(setAdapters(to, [{ adapter: { ...one } }]), 'bad-option', 'adapters[0].adapter')
  for (const scale of [NaN, Infinity, '1', null]) {
    await refuses(setAdapters(to, [{ adapter: one, scale }]), 'bad-option', 'adapters[0].scale')
  }
  await refuses(setAdapters(to, [{ adapter: one, rank: 4 }]), 'bad-option', 'rank')
  await refuses(setAdapters(to, one), 'bad-option', 'array')
  assert.equal(to.calls.length, made)
  await one.dispose()
  assert.deepEqual(to.calls.at(-1), ['freeAdapter', 1])
})

test('a load applies its adapters together and keeps no handle; wrong ones are refused before', async () => {
  const [applied, disposed] = [[], []]
  const { signal } = new AbortController()
  const model = {
    loadAdapter: async (source, given) => {
      assert.equal(given.signal, signal)
      if (source === 'none') throw new Error('there is none')
      return { source, dispose: async () => { disposed.push(source) } }
    },
    setAdapters: async all => { applied.push(all.map(({ adapter, scale }) => [adapter.source, scale])) }
  }
  await applying([{ source: 'a' }, { source: 'b', scale: 0 }])(model, signal)
  assert.deepEqual([applied, disposed], [[[['a', 1], ['b', 0]]], ['a', 'b']])
  await assert.rejects(applying([{ source: 'a' }, { source: 'none' }])(model, signal), /there is none/)
  assert.deepEqual([applied.length, disposed], [1, ['a', 'b', 'a']])
  const refused = (adapters, fact) => assert.throws(() => applying(adapters), error => {
    assert.equal(error.code, 'bad-option')
    return error.message.includes(fact)
  })
  refused('a', 'array')
  refused([{ url: 'a' }], 'url')
  refused([{ source: 'a', scale: NaN }], 'adapters[0].scale')
})

test('an adapter whose load is aborted late is freed', async () => {
  const to = transport()
  const abort = new AbortController()
  const late = { call: async (method, args) => {
    if (method === 'loadAdapter') abort.abort(new Error('enough'))
    return to.call(method, args)
  } }
  const aborting = async (job, signal) => {
    const found = await job()
    signal.throwIfAborted()
    return found
  }
  await assert.rejects(loadAdapter(late, aborting, new Blob(['1']), abort.signal), /enough/)
  assert.deepEqual(to.calls.map(([method]) => method), ['loadAdapter', 'freeAdapter'])
})
