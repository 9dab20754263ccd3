// `model.embed` in the page, with a transport that is made by hand: which texts a call has, and whose error it is.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { embedded } from './embedded.mjs'

/** A transport's `embed`: each text has the vector of its length. `before` runs at the begin of each call. */
const transport = (before = () => {}) => {
  const asked = []
  const call = async ([texts, options], streaming) => {
    asked.push({ texts, options })
    await before(streaming, asked.length)
    return { values: Float32Array.from(texts, ({ length }) => length), tokens: 0, cut: 0 }
  }
  return { asked, call }
}

test('a call has a limit of texts and of characters, and every text is in one', async () => {
  const { asked, call } = transport()
  const lengths = [...Array(300).fill(1), 200_000, 100_000, 7, 1_000_000, 3, 262_144, ...Array(5).fill(65_536)]
  const vectors = await embedded(call, lengths.map(length => 'x'.repeat(length)), {})
  assert.deepEqual(vectors.map(([length]) => length), lengths)
  assert.deepEqual(asked.map(({ texts }) => texts.length), [256, 45, 2, 1, 1, 1, 4, 1])
  // Errors name a text by its number among all.
  assert.deepEqual(asked.map(({ options }) => options.first), [undefined, 256, 301, 303, 304, 305, 306, 310])
  await embedded(call, ['a'], { first: 7, task: 'query' })
  assert.deepEqual(asked.at(-1).options, { first: 7, task: 'query' })
})

test('a wrong text is named before one is computed', async () => {
  const { asked, call } = transport()
  const texts = Array(1000).fill('a')
  for (const [wrong, why] of [[7, /`texts\[1000\]`: must be/], [new Uint32Array(), /`texts\[1000\]`: there are no tokens/]]) {
    await assert.rejects(embedded(call, [...texts, wrong], {}), { code: 'bad-option', message: why })
    await assert.rejects(embedded(call, [wrong], { first: 1000 }), { code: 'bad-option', message: why })
  }
  await assert.rejects(embedded(call, texts, { first: -1 }), { code: 'bad-option', message: /`first`/ })
  assert.equal(asked.length, 0)
})

test('no progress comes after an abort', async () => {
  const stop = new AbortController()
  const told = []
  const { call } = transport(({ onItem }, calls) => {
    onItem(1)
    if (calls === 1) return
    stop.abort(new Error('enough'))
    // It was on its way.
    onItem(2)
    throw stop.signal.reason
  })
  const onProgress = ({ done }) => told.push(done)
  await assert.rejects(embedded(call, Array(300).fill('a'), { signal: stop.signal, onProgress }), /enough/)
  assert.deepEqual(told, [1, 256, 257])
})
