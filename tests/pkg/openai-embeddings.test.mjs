// OpenAI's embeddings with OpenAI's own client, and `model.embed` behind them, without an engine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI from 'openai'
import { load, refuses } from './answerer.mjs'
import { embedded } from './embedded.mjs'

const { readEmbeddingRequest } = await load('openai/embeddings')
const { answer } = await load('openai/server')
const { BitNetError } = await load('error')

/** A transport's `embed`: each text has the vector of its length and 0.1. */
const transport = () => {
  const asked = []
  const call = async ([texts, options], { onItem, signal }) => {
    signal?.throwIfAborted()
    asked.push({ texts, options })
    texts.forEach((_, n) => onItem(n + 1))
    const values = Float32Array.from(texts.flatMap(text => [text.length, 0.1]))
    return { values, tokens: 2 * texts.length, cut: 1 }
  }
  return { asked, call }
}

const modelOf = ({ call }) => ({ info: { name: 'tiny' }, embed: (texts, options) => embedded(call, texts, options) })

const clientOf = model => new OpenAI({
  apiKey: '-', maxRetries: 0, fetch: (input, init) => answer(model, input, init)
})

test('the client gets the vectors, as numbers and as base64', async () => {
  const from = transport()
  const client = clientOf(modelOf(from))
  // By itself the client asks for base64, and gives numbers.
  for (const encoding_format of [undefined, 'float']) {
    const { data, model, usage } = await client.embeddings.create({ model: 'any', input: ['a', 'bcd'], encoding_format })
    assert.deepEqual(data.map(({ index, object }) => [index, object]), [[0, 'embedding'], [1, 'embedding']])
    assert.deepEqual(data.map(({ embedding }) => [...embedding]), [[1, Math.fround(0.1)], [3, Math.fround(0.1)]])
    assert.deepEqual([model, usage], ['any', { prompt_tokens: 4, total_tokens: 4 }])
  }
  const { data } = await client.embeddings.create({ model: 'any', input: 'a', encoding_format: 'base64' })
  assert.equal(data[0].embedding, Buffer.from(Float32Array.of(1, 0.1).buffer).toString('base64'))
  await client.embeddings.create({ model: 'any', input: 'a', dimensions: 8, user: 'me', task: 'query' })
  assert.deepEqual(from.asked.at(-1).options, { dimensions: 8, task: 'query' })
})

test('inputs: a text, tokens, or several of them', () => {
  const textsOf = input => readEmbeddingRequest({ input }).texts
  assert.deepEqual(textsOf('a'), ['a'])
  assert.deepEqual(textsOf(['a', '']), ['a', ''])
  assert.deepEqual(textsOf([1, 2]), [Uint32Array.of(1, 2)])
  assert.deepEqual(textsOf([[1], [2, 3]]), [Uint32Array.of(1), Uint32Array.of(2, 3)])
  assert.equal(textsOf(Array(2048).fill('')).length, 2048)
  // One text of many tokens is one input.
  assert.deepEqual(textsOf(Array(2049).fill(1)).length, 1)
})

test('wrong requests are refused in OpenAI\'s words', () => {
  for (const [body, kind, param] of [
    [{}, 'missing_required_parameter', 'input'], [{ input: [] }, 'invalid_value', 'input'], [{ input: Array(2049).fill('') }, 'invalid_value', 'input'], [{ input: 7 }, 'invalid_type', 'input'],
    [{ input: ['a', 7] }, 'invalid_type', 'input[1]'], [{ input: [[1, -1]] }, 'invalid_value', 'input[0][1]'],
    [{ input: 'a', dimensions: 0 }, 'invalid_value', 'dimensions'], [{ input: 'a', dimensions: 1.5 }, 'invalid_type', 'dimensions'],
    [{ input: 'a', encoding_format: 'int8' }, 'invalid_value', 'encoding_format'], [{ input: 'a', model: 7 }, 'invalid_type', 'model'],
    [{ input: 'a', stream: true }, 'unknown_parameter', 'stream'], [{ input: 'a', truncate: 1 }, 'invalid_type', 'truncate'],
    [{ input: 'a', pooling: 'max' }, 'invalid_value', 'pooling'], [{ input: 'a', task: 'poem' }, 'invalid_value', 'task']
  ]) refuses(() => readEmbeddingRequest(body), kind, param)
})

test('failures have a status, and an abort ends the call', async () => {
  const failing = code => ({ info: { name: '' }, embed: async () => { throw new BitNetError(code, 'no') } })
  for (const [code, status, name] of [['context-full', 400, 'context_length_exceeded'], ['bad-option', 400, 'bad-option'], ['internal', 500, 'internal']]) {
    await assert.rejects(clientOf(failing(code)).embeddings.create({ model: 'any', input: 'a' }), error => {
      assert.deepEqual([error.status, error.code], [status, name])
      return true
    })
  }
  const stop = AbortSignal.abort(new Error('enough'))
  await assert.rejects(embedded(transport().call, ['a'], { signal: stop }), /enough/)
})

test('many texts are embedded some at a time, with their progress', async () => {
  const from = transport()
  const texts = Array.from({ length: 600 }, (_, n) => 'x'.repeat(n % 7))
  const said = []
  const vectors = await embedded(from.call, texts, { onProgress: progress => said.push(progress) })
  assert.deepEqual(vectors.map(([first]) => first), texts.map(text => text.length))
  assert.ok(from.asked.length > 1 && from.asked.every(({ texts }) => texts.length <= 256))
  assert.deepEqual(said.at(-1), { done: 600, total: 600, tokens: 1200, cut: from.asked.length })
  assert.deepEqual(said.map(({ done }) => done), said.map(({ done }) => done).toSorted((a, b) => a - b))
  assert.equal(said.filter(({ done }) => done === 600).length, 1)
  // Each vector has memory of its own.
  assert.equal(vectors[0].buffer.byteLength, 8)
})

test('an abort between two calls ends them, and an error of onProgress does not', async () => {
  const from = transport()
  const stop = new AbortController()
  const reported = []
  globalThis.reportError = error => reported.push(error.message)
  const onProgress = ({ done }) => {
    if (done === 256) stop.abort(new Error('enough'))
    throw new Error('the page')
  }
  await assert.rejects(embedded(from.call, Array(600).fill('a'), { signal: stop.signal, onProgress }), /enough/)
  assert.equal(from.asked.length, 1)
  assert.ok(reported.length > 0 && reported.every(message => message === 'the page'))
  delete globalThis.reportError
})

test('wrong texts and options are refused before any work', async () => {
  const from = transport()
  for (const [texts, options, name] of [
    ['a', {}, 'texts'], [['a', 7], {}, 'texts[1]'], [[[1]], {}, 'texts[0]'], [['a'], { onProgress: 7 }, 'onProgress']
  ]) {
    await assert.rejects(embedded(from.call, texts, options), error => {
      assert.deepEqual([error.code, error.message.includes(`\`${name}\``)], ['bad-option', true], error.message)
      return true
    })
  }
  assert.equal(from.asked.length, 0)
  // The options of no texts are checked too.
  assert.deepEqual(await embedded(from.call, [], { task: 'query' }), [])
  assert.deepEqual(from.asked, [{ texts: [], options: { task: 'query' } }])
})
