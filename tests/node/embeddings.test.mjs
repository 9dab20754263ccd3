// Embeddings of a real model in Node: `model.embed`, OpenAI's client at a server, and the command.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import OpenAI from 'openai'
import { inRoot } from '../../scripts/paths.mjs'
import { failsWith, GOLDEN, run, using } from './support.mjs'

const { serve } = await import(inRoot('pkg', 'node', 'serve.js'))
const DATA = inRoot('tests', 'data', 'embed')
const MODEL = `${DATA}/bitnet-embd-i2_s.gguf`
const { sequences, texts } = JSON.parse(readFileSync(`${DATA}/tokens.json`, 'utf8'))

/** The rows of another program. */
const expected = pooling => {
  const bytes = readFileSync(`${DATA}/bitnet-embd-i2_s.${pooling}.int8.f32`)
  return sequences.map((_, row) => Array.from({ length: 256 }, (_, n) => bytes.readFloatLE(4 * (256 * row + n))))
}
const cosine = (one, other) => one.reduce((sum, value, n) => sum + value * other[n], 0)
const near = (found, other) => {
  assert.equal(found.length, other.length)
  for (const [n, vector] of found.entries()) assert.ok(cosine(vector, other[n]) > 0.9995, `${n}: ${cosine(vector, other[n])}`)
}

test('vectors are those of another program, in a batch and of texts', async () => {
  await using(MODEL, { backend: 'cpu' }, async model => {
    assert.deepEqual([model.info.embeds, model.info.pooling, model.info.dimensions], [true, 'last', 256])
    const ids = sequences.map(ids => Uint32Array.from(ids))
    near(await model.embed(ids), expected('last'))
    for (const pooling of ['mean', 'cls']) near(await model.embed(ids, { pooling }), expected(pooling))
    near(await model.embed(Object.values(texts)), Object.keys(texts).map(row => expected('last')[row]))
    const said = []
    const many = Array.from({ length: 600 }, (_, n) => ids[n % ids.length])
    const found = await model.embed(many, { onProgress: progress => said.push(progress) })
    near(found, many.map((_, n) => expected('last')[n % ids.length]))
    assert.deepEqual([said.at(-1).done, said.at(-1).total], [600, 600])
    assert.equal(said.at(-1).tokens, many.reduce((sum, { length }) => sum + length, 0))
    const stop = new AbortController()
    const onProgress = () => stop.abort(new Error('enough'))
    await assert.rejects(model.embed(many, { signal: stop.signal, onProgress }), /enough/)
    assert.equal((await model.embed(['a']))[0].length, 256)
    await assert.rejects(model.generate('Hello', { raw: true }).text(), failsWith('embedding-model'))
    await assert.rejects(model.embed(['a'], { task: 'query', prefix: 'x' }), failsWith('bad-option', /only one/))
    await assert.rejects(model.embed(['a'], { poling: 'last' }), failsWith('bad-option', /poling/))
    await assert.rejects(model.embed(['hello '.repeat(3000)]), failsWith('context-full'))
  })
})

test('a model that answers embeds with a pooling, which a load may name', async () => {
  await using(GOLDEN, { backend: 'cpu' }, async model => {
    await assert.rejects(model.embed(['a']), failsWith('bad-option', /pooling/))
    const [before] = await model.embed(['a'], { pooling: 'mean' })
    await using(GOLDEN, { backend: 'cpu', pooling: 'mean' }, async other => {
      assert.equal(other.info.pooling, 'mean')
      assert.deepEqual(await other.embed(['a']), [before])
    })
  })
})

test('OpenAI\'s client gets vectors over HTTP', async t => {
  await using(MODEL, { backend: 'cpu' }, async model => {
    const server = await serve(model, { port: 0, host: 'localhost' })
    t.after(() => server.close())
    const client = new OpenAI({ baseURL: server.address, apiKey: '-', maxRetries: 0 })
    for (const encoding_format of [undefined, 'float']) {
      const { data, usage } = await client.embeddings.create({ model: 'any', input: sequences, encoding_format })
      near(data.map(({ embedding }) => embedding), expected('last'))
      assert.equal(usage.prompt_tokens, sequences.flat().length)
    }
    const { data } = await client.embeddings.create({ model: 'any', input: 'hello', dimensions: 8 })
    assert.equal(data[0].embedding.length, 8)
    await assert.rejects(client.chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'a' }] }), { status: 400, code: 'embedding-model' })
  })
})

test('tritloom embed prints a vector for each text', async () => {
  const tritloom = (args, options) => run(process.execPath, [inRoot('pkg', 'node', 'cli.js'), 'embed', '--model', MODEL, '--backend', 'cpu', ...args], options)
  const { status, stdout, stderr } = await tritloom(['hello world', ''])
  assert.equal(status, 0, stderr)
  near(stdout.trim().split('\n').map(line => JSON.parse(line)), [expected('last')[6], expected('last')[8]])
  const piped = await tritloom([], { input: 'hello world\n\n' })
  assert.equal(piped.stdout, stdout)
  assert.equal((await tritloom(['a', '--task', 'query', '--prefix', 'x'])).status, 2)
  // The lines before a call with a wrong text are printed, and its error names its line.
  const lines = `${'a\n'.repeat(299)}${'hello '.repeat(100)}`
  const failing = await tritloom(['--context', '16'], { input: lines })
  assert.equal(failing.stdout.trim().split('\n').length, 256)
  assert.match(failing.stderr, /texts\[299\]/)
})
