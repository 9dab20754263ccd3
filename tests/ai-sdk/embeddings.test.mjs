// `embed` and `embedMany` of the npm package `ai` with models that are made by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { APICallError, embed, embedMany, UnsupportedFunctionalityError } from 'ai'
import { load, modelOf } from './models.mjs'

const { tritloom } = await load('ai-sdk')
const { BitNetError } = await load('error')

/** A model that gives each text a vector of its length and 0.5; `fails` is thrown before that, once for each. */
const embedder = (...fails) => {
  const model = { ...modelOf([]), asked: [] }
  model.embed = async (texts, { onProgress, signal, ...options }) => {
    model.asked.push({ texts, options })
    signal?.throwIfAborted()
    const error = fails.shift()
    if (error) throw error
    onProgress({ done: texts.length, total: texts.length, tokens: 3 * texts.length, cut: 0 })
    return texts.map(text => Float32Array.of(text.length, 0.5))
  }
  return model
}

test('embed and embedMany: all texts in one call, with the usage and the options', async () => {
  const from = embedder()
  const model = tritloom.embeddingModel(from)
  const one = await embed({ model, value: 'abc', providerOptions: { tritloom: { task: 'query', pooling: 'last' } } })
  assert.deepEqual([one.embedding, one.usage], [[3, 0.5], { tokens: 3 }])
  assert.deepEqual(from.asked, [{ texts: ['abc'], options: { task: 'query', pooling: 'last' } }])
  const values = Array.from({ length: 3000 }, (_, n) => 'x'.repeat(n % 5))
  const many = await embedMany({ model, values })
  assert.deepEqual(many.embeddings.map(([length]) => length), values.map(({ length }) => length))
  assert.deepEqual([many.usage, from.asked.length], [{ tokens: 9000 }, 2])
  await embed({ model, value: 'a', dimensions: 8 })
  await embedMany({ model, values: ['a'], dimensions: 9 })
  assert.deepEqual(from.asked.slice(-2).map(({ options }) => options), [{ dimensions: 8 }, { dimensions: 9 }])
})

test('failures are the SDK\'s errors, and a lost GPU is tried again', async () => {
  const lost = embedder(new BitNetError('device-lost', 'lost'))
  assert.deepEqual((await embed({ model: tritloom.embeddingModel(lost), value: 'a' })).embedding, [1, 0.5])
  const failing = tritloom.embeddingModel(embedder(new BitNetError('context-full', 'too long')))
  await assert.rejects(embed({ model: failing, value: 'a' }), error => APICallError.isInstance(error) && error.code === 'context-full')
  const wrong = { model: tritloom.embeddingModel(embedder()), value: 'a', providerOptions: { tritloom: { dimension: 3 } } }
  await assert.rejects(embed(wrong), { code: 'bad-option', message: /dimension/ })
  await assert.rejects(embed({ model: tritloom.embeddingModel(modelOf([])), value: 'a' }), error => UnsupportedFunctionalityError.isInstance(error))
  const abortSignal = AbortSignal.abort(new Error('enough'))
  await assert.rejects(embed({ model: failing, value: 'a', abortSignal }), /enough/)
})
