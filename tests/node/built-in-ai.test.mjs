// The browsers' interfaces in Node, with the bundled models.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { BUNDLED, GOLDEN } from './goldens.mjs'

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

test('calls and results that a page gives go through the model\'s own template', async () => {
  configure({ url: pathToFileURL(BUNDLED), load: { backend: 'cpu' }, answers: { maxTokens: 3 } })
  const { LanguageModel, LanguageModelToolCall, LanguageModelToolSuccess } = entry
  const options = {
    tools: [{ name: 'dim', description: 'Dims the lamp.', inputSchema: { type: 'object', properties: { level: { type: 'integer' } } } }],
    expectedInputs: [{ type: 'tool-call' }, { type: 'tool-response' }], expectedOutputs: [{ type: 'tool-call' }]
  }
  const call = { role: 'assistant', content: [{ type: 'tool-call', value: new LanguageModelToolCall({ callID: 'a', name: 'dim', arguments: { level: 2 } }) }] }
  const resultOf = value => {
    const result = new LanguageModelToolSuccess({ callID: 'a', name: 'dim', result: [{ type: 'text', value }] })
    return [{ role: 'user', content: [{ type: 'tool-response', value: result }] }]
  }
  const session = await LanguageModel.create(options)
  const { contextUsage, contextWindow } = session
  assert.ok(contextUsage > 100, 'the tools')
  await session.append([{ role: 'user', content: 'It is too bright.' }, call])
  const copy = await session.clone()
  const measured = await copy.measureContextUsage(resultOf('It is dim now.'))
  await copy.append(resultOf('It is dim now.'))
  // A call alone is counted with one word after it.
  const off = measured - (copy.contextUsage - session.contextUsage)
  assert.ok(off >= 0 && off <= 3, `${off}`)
  assert.equal(typeof await copy.prompt('Is it?'), 'string')
  const long = resultOf('dim '.repeat(contextWindow))
  const requested = await session.measureContextUsage(long)
  assert.ok(requested > contextWindow)
  await assert.rejects(session.prompt(long), { name: 'QuotaExceededError', requested, quota: contextWindow })
  assert.ok(await session.measureContextUsage([{ role: 'assistant', content: 'It is', prefix: true }]) > 0)
  configure({})
  for (const one of [session, copy]) one.destroy()
})
