// `SemanticEmbedder` without a browser, with a model that is made by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entry, expectAborts, fails, given, wrong } from './drafts.mjs'
import { echo } from './echo.mjs'

const { configure, DecisionModel, LanguageModel, SemanticEmbedder, Summarizer } = entry
const { sharedModel } = await import(new URL('../../pkg/built-in-ai/shared-model.js', import.meta.url))

/** A model that gives each text a vector of its length. */
const embedder = (pooling = 'last') => {
  const model = { ...echo(), embedded: [] }
  model.info = { ...model.info, ...(pooling && { pooling }) }
  model.embed = async (texts, { signal, ...options }) => {
    signal?.throwIfAborted()
    model.embedded.push({ texts, options })
    await new Promise(setImmediate)
    return texts.map(text => Float32Array.of(text.length))
  }
  return model
}

test('a text or several become vectors, for each task of the draft', async () => {
  const model = given(embedder())
  assert.equal(await SemanticEmbedder.availability(), 'available')
  const session = await SemanticEmbedder.create()
  assert.deepEqual(await session.embed('four'), { embeddings: [{ values: Float32Array.of(4) }] })
  const found = await session.embed(new Set(['a', 'bc']), { taskType: 'retrieval-query' })
  assert.deepEqual(found.embeddings.map(({ values }) => values[0]), [1, 2])
  assert.deepEqual(await session.embed([]), { embeddings: [] })
  const tasks = []
  for (const taskType of ['semantic-similarity', 'clustering', 'classification', 'retrieval-query', 'retrieval-document']) {
    await session.embed('a', { taskType })
    tasks.push(model.embedded.at(-1).options.task)
  }
  assert.deepEqual(tasks, ['similarity', 'similarity', 'similarity', 'query', 'document'])
  assert.deepEqual(model.embedded[0], { texts: ['four'], options: {} })
})

test('wrong arguments, aborts and the end of a session', async () => {
  given(embedder())
  const session = await SemanticEmbedder.create()
  await wrong(session.embed())
  await wrong(session.embed('a', { taskType: 'search' }))
  await wrong(session.embed('a', { signal: 7 }))
  await wrong(SemanticEmbedder.create(7))
  assert.throws(() => new SemanticEmbedder(), TypeError)
  await expectAborts(signal => session.embed('a', { signal }))
  const running = session.embed('a')
  session.destroy()
  await fails(running, 'InvalidStateError')
  await fails(session.embed('a'), 'InvalidStateError')
})

test('a model without a pooling cannot embed', async () => {
  given(embedder(null))
  await fails(SemanticEmbedder.create(), 'NotSupportedError', /pooling/)
})

test('a model that was made to embed answers nothing', async () => {
  const model = embedder()
  model.info.embeds = true
  given(model)
  for (const other of [LanguageModel, Summarizer, DecisionModel]) {
    assert.equal(await other.availability(), 'unavailable', other.name)
    await fails(other.create(), 'NotSupportedError', /embeds texts/)
  }
  assert.equal(await SemanticEmbedder.availability(), 'available')
  await (await SemanticEmbedder.create()).embed('a')
})

test('it has a model of its own if the settings name one', async () => {
  const [answers, embeds] = [echo(), embedder()]
  configure({ model: answers, embedder: { model: embeds } })
  await (await SemanticEmbedder.create()).embed('a')
  assert.deepEqual([embeds.embedded.length, embeds.asked.length], [1, 0])
  await (await LanguageModel.create()).prompt('a')
  assert.deepEqual([embeds.asked.length, answers.asked.length > 0], [0, true])
  // Settings that are not about the model hold for both.
  configure({ model: answers, languages: ['de'], embedder: { model: embeds } })
  assert.equal(sharedModel(true).settings.languages[0], 'de')
  for (const wrongOne of [7, { languages: ['en'] }, { url: 'https://a.example/m.gguf', model: embeds }]) {
    assert.throws(() => configure({ model: answers, embedder: wrongOne }), { code: 'bad-option' })
  }
  configure({})
})
