// The npm package `ai` asks real models, in Node. In pages: tests/web/ai-sdk.spec.ts.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { generateText, isStepCount, Output, streamText, tool, ToolLoopAgent } from 'ai'
import { z } from 'zod'
import { GOLDEN, goldens } from '../node/goldens.mjs'
import { inRoot } from '../../scripts/paths.mjs'

const { doesBrowserSupportTritloom, tritloom } = await import('../../pkg/node/ai-sdk.js')

// The SDK prints warnings for people.
globalThis.AI_SDK_LOG_WARNINGS = false

const WHO = goldens.find(({ name }) => name === 'who')
const prompt = WHO.turns.at(-1)[1]
const model = tritloom(GOLDEN, { backend: 'cpu' })
const thinking = tritloom(inRoot('tests/data/thinking/thinking.gguf'), { backend: 'cpu', template: 'file' })
after(() => Promise.all([model.dispose(), thinking.dispose()]))

test('the golden text, whole and streamed, and the usage', async () => {
  assert.equal(doesBrowserSupportTritloom(), true)
  assert.equal(await model.availability(), 'available')
  const whole = await generateText({ model, prompt, temperature: 0 })
  assert.deepEqual([whole.text, whole.finishReason], [WHO.greedy_text, 'stop'])
  // The token that ends an answer is no part of it.
  assert.deepEqual([whole.usage.inputTokens, whole.usage.outputTokens], [WHO.ids.length, WHO.greedy.length - 1])
  const streamed = streamText({ model, prompt, temperature: 0 })
  const texts = await Array.fromAsync(streamed.textStream)
  assert.equal(texts.join(''), WHO.greedy_text)
  assert.ok(texts.length > 3)
  // The prompt need not be computed again.
  assert.ok((await streamed.usage).inputTokenDetails.cacheReadTokens > 0)
})

const lookup = tool({ description: 'Looks up.', inputSchema: z.object({ word: z.enum(['sun', 'moon']) }), execute: async ({ word }) => word })

test('an answer in a format, and with tools too', async () => {
  const output = Output.object({ schema: z.object({ legs: z.number().int().min(3).max(4), kind: z.enum(['cat', 'dog']) }) })
  const streamed = streamText({ model, prompt, output })
  assert.ok((await Array.fromAsync(streamed.partialOutputStream)).length > 1)
  for (const { legs, kind } of [(await generateText({ model, prompt, output })).output, await streamed.output]) {
    assert.ok([3, 4].includes(legs) && ['cat', 'dog'].includes(kind))
  }
  // With tools too, the model calls one: the other tool, or that of the answer.
  const kind = Output.object({ schema: z.object({ kind: z.enum(['cat', 'dog']) }) })
  const { content: [said] } = await generateText({ model, prompt, tools: { lookup }, output: kind, temperature: 0, stopWhen: isStepCount(1) })
  if (said.type === 'text') assert.deepEqual(Object.keys(JSON.parse(said.text)), ['kind'])
  else assert.deepEqual([said.type, said.toolName], ['tool-call', 'lookup'])
})

test('an agent calls tools in several steps', async () => {
  const seen = []
  const tools = { lookup: tool({ ...lookup, execute: async ({ word }) => { seen.push(word); return { word, far: true } } }) }
  const agent = new ToolLoopAgent({
    model, temperature: 0, maxOutputTokens: 90, tools, stopWhen: isStepCount(3),
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber < 2 ? { type: 'tool', toolName: 'lookup' } : 'none' })
  })
  const result = await agent.stream({ prompt })
  let inputs = ''
  for await (const part of result.stream) if (part.type === 'tool-input-delta') inputs += part.delta
  const steps = await result.steps
  assert.deepEqual(steps.slice(0, 2).map(({ finishReason }) => finishReason), ['tool-calls', 'tool-calls'])
  assert.equal(steps.length, 3)
  assert.equal(inputs.replaceAll(' ', ''), seen.map(word => JSON.stringify({ word })).join(''))
  // A step computes only what is new in it.
  const [first, second] = steps.map(({ usage }) => usage.inputTokenDetails.cacheReadTokens)
  assert.ok(second > first)
})

test('reasoning comes apart from the answer, and can be switched off', async () => {
  const asked = { model: thinking, prompt: 'Is it warm?', temperature: 0 }
  const on = await generateText({ ...asked, reasoning: 'high' })
  assert.match(on.reasoningText, /Is it cold\? In summer no\./)
  assert.equal(on.text, 'It is warm today!')
  assert.equal(on.usage.outputTokenDetails.reasoningTokens, 11)
  const off = await generateText({ ...asked, reasoning: 'none' })
  assert.deepEqual([off.reasoningText, off.text], [undefined, 'It is warm today!'])
})

test('a stop ends the model\'s answer, and the next one is right', async () => {
  const abort = new AbortController()
  const types = []
  for await (const { type } of streamText({ model, prompt, temperature: 0, abortSignal: abort.signal }).stream) {
    types.push(type)
    if (type === 'text-delta') abort.abort()
  }
  assert.equal(types.at(-1), 'abort')
  assert.equal((await generateText({ model, prompt, temperature: 0 })).text, WHO.greedy_text)
})

test('what the model refuses says so, and is not tried again', async () => {
  const refused = async (options, said) =>
    assert.rejects(generateText({ model, prompt, ...options }), { isRetryable: false, ...said })
  await refused({ prompt: 'the moon '.repeat(4000) }, { code: 'context-full' })
  await refused({ temperature: -1 }, { code: 'bad-option', message: /temperature/ })
  await refused({ output: Output.object({ schema: z.object({ a: z.string().min(3).max(2) }) }) }, { code: 'bad-option' })
  await refused({ model: tritloom(GOLDEN, { contxt: 64 }) }, { code: 'bad-option', message: /contxt/ })
  await refused({ model: tritloom(`${GOLDEN}.none`) }, { code: 'io' })
})
