// The browsers' interfaces in Node, with the golden model.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { GOLDEN } from './goldens.mjs'

const { configure } = await import('../../pkg/node/polyfill.js')
const entry = await import('../../pkg/node/built-in-ai.js')

test('the polyfill installs the interfaces, and a model from a file answers', async () => {
  const { LanguageModel, Summarizer } = globalThis
  assert.equal(LanguageModel, entry.LanguageModel)
  assert.equal(await LanguageModel.availability(), 'unavailable')
  configure({ url: pathToFileURL(GOLDEN), load: { backend: 'cpu' }, answers: { maxTokens: 3 } })
  assert.equal(await LanguageModel.availability(), 'available')
  const heard = []
  const session = await LanguageModel.create({
    samplingMode: 'most-predictable', monitor: target => target.addEventListener('downloadprogress', ({ loaded }) => heard.push(loaded))
  })
  assert.deepEqual([heard[0], heard.at(-1)], [0, 1])
  assert.equal(await session.prompt('Who are you?'), 'I am a')
  const summarizer = await Summarizer.create({ type: 'headline', format: 'plain-text' })
  assert.equal(typeof await summarizer.summarize('It rained all day.'), 'string')
  configure({})
  session.destroy()
  summarizer.destroy()
})
