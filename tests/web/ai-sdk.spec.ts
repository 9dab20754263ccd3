// The npm package `ai` asks a real model in a page. Tests that need none are in tests/ai-sdk.
import type { Page } from '@playwright/test'
import { giveAi } from './ai'
import { expect, GOLDEN_MODEL, goldens, load, test } from './harness'

test.use({ backend: 'cpu' })

const WHO = goldens.find(({ name }) => name === 'who')!
const THINKING = '/tests/data/thinking/thinking.gguf'

/** Loads a model, and gives the page the packages. */
const ready = async (page: Page, url = GOLDEN_MODEL, options = {}) => {
  await load(page, options, url)
  await giveAi(page)
}

test('generateText and streamText give the golden text, and the usage', { tag: '@quick' }, async ({ shared: page }) => {
  await ready(page)
  const found = await page.evaluate(async prompt => {
    const { ai, aiSdk } = window
    const model = aiSdk.tritloom(window.model)
    const whole = await ai.generateText({ model, prompt, temperature: 0 })
    const streamed = ai.streamText({ model, prompt, temperature: 0 })
    const texts: string[] = []
    for await (const text of streamed.textStream) texts.push(text)
    const { inputTokenDetails: read, ...usage } = await streamed.usage
    return { text: whole.text, usage: whole.usage, reason: whole.finishReason, texts, again: [usage.inputTokens, read.cacheReadTokens] }
  }, WHO.turns!.at(-1)![1])
  expect(found.text).toBe(WHO.greedy_text)
  expect(found.reason).toBe('stop')
  expect(found.usage.inputTokens).toBe(WHO.ids.length)
  // The token that ends an answer is no part of it.
  expect(found.usage.outputTokens).toBe(WHO.greedy.length - 1)
  expect(found.texts.join('')).toBe(WHO.greedy_text)
  expect(found.texts.length).toBeGreaterThan(3)
  const [prompt, cached] = found.again
  expect(prompt).toBe(WHO.ids.length)
  expect(cached).toBeGreaterThan(0)
})

test('an answer in a format, and with tools too', async ({ shared: page }) => {
  await ready(page)
  const found = await page.evaluate(async () => {
    const { ai, aiSdk } = window
    const { z } = ai
    const model = aiSdk.tritloom(window.model)
    const output = ai.Output.object({ schema: z.object({ legs: z.number().int().min(3).max(4), kind: z.enum(['cat', 'dog']) }) })
    const whole = await ai.generateText({ model, prompt: 'Who are you?', output })
    const streamed = ai.streamText({ model, prompt: 'Who are you?', output })
    let partials = 0
    for await (const _ of streamed.partialOutputStream) partials += 1
    // With tools too, the model calls one: the other tool, or that of the answer.
    const lookup = ai.tool({ description: 'Looks up.', inputSchema: z.object({ word: z.enum(['sun', 'moon']) }), execute: async ({ word }) => word })
    const kind = ai.Output.object({ schema: z.object({ kind: z.enum(['cat', 'dog']) }) })
    const both = await ai.generateText({
      model, prompt: 'Who are you?', tools: { lookup }, output: kind, temperature: 0, stopWhen: ai.isStepCount(1)
    })
    return { whole: whole.output, partials, streamed: await streamed.output, both: both.content }
  })
  for (const { legs, kind } of [found.whole, found.streamed]) {
    expect([3, 4]).toContain(legs)
    expect(['cat', 'dog']).toContain(kind)
  }
  expect(found.partials).toBeGreaterThan(1)
  const [said] = found.both
  if (said?.type === 'text') expect(Object.keys(JSON.parse(said.text))).toEqual(['kind'])
  else expect(said).toMatchObject({ type: 'tool-call', toolName: 'lookup' })
})

test('an agent calls tools in several steps', async ({ shared: page }) => {
  await ready(page)
  const found = await page.evaluate(async () => {
    const { ai, aiSdk } = window
    const seen: string[] = []
    const lookup = ai.tool({
      description: 'Looks up.',
      inputSchema: ai.z.object({ word: ai.z.enum(['sun', 'moon']) }),
      execute: async ({ word }) => { seen.push(word); return { word, far: true } }
    })
    const agent = new ai.ToolLoopAgent({
      model: aiSdk.tritloom(window.model), temperature: 0, maxOutputTokens: 90, tools: { lookup }, stopWhen: ai.isStepCount(3),
      prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber < 2 ? { type: 'tool', toolName: 'lookup' } : 'none' })
    })
    const result = await agent.stream({ prompt: 'Who are you?' })
    let inputs = ''
    for await (const part of result.stream) if (part.type === 'tool-input-delta') inputs += part.delta
    const steps = await result.steps
    return { seen, inputs, reasons: steps.map(({ finishReason }) => finishReason), cached: steps.map(({ usage }) => usage.inputTokenDetails.cacheReadTokens ?? 0) }
  })
  expect(found.reasons.slice(0, 2)).toEqual(['tool-calls', 'tool-calls'])
  expect(found.reasons.length).toBe(3)
  expect(found.seen.length).toBeGreaterThanOrEqual(2)
  expect(found.inputs.replaceAll(' ', '')).toBe(found.seen.map(word => JSON.stringify({ word })).join(''))
  // A step computes only what is new in it.
  expect(found.cached[1]).toBeGreaterThan(found.cached[0]!)
})

test('reasoning comes apart from the answer, and can be switched off', async ({ shared: page }) => {
  await ready(page, THINKING, { template: 'file' })
  const found = await page.evaluate(async () => {
    const { ai, aiSdk } = window
    const asked = { model: aiSdk.tritloom(window.model), prompt: 'Is it warm?', temperature: 0 }
    const on = await ai.generateText({ ...asked, reasoning: 'high' })
    const off = await ai.generateText({ ...asked, reasoning: 'none' })
    return { on: [on.reasoningText, on.text, on.usage.outputTokenDetails.reasoningTokens], off: [off.reasoningText, off.text] }
  })
  expect(found.on[0]).toContain('Is it cold? In summer no.')
  expect(found.on[1]).toBe('It is warm today!')
  expect(found.on[2]).toBe(11)
  expect(found.off).toEqual([undefined, 'It is warm today!'])
})

test('a stop ends the model\'s answer, and the next one is right', async ({ shared: page }) => {
  await ready(page)
  const found = await page.evaluate(async prompt => {
    const { ai, aiSdk } = window
    const model = aiSdk.tritloom(window.model)
    const abort = new AbortController()
    const types: string[] = []
    for await (const { type } of ai.streamText({ model, prompt, temperature: 0, abortSignal: abort.signal }).stream) {
      types.push(type)
      if (type === 'text-delta') abort.abort()
    }
    const name = await ai.generateText({ model, prompt, abortSignal: AbortSignal.abort() }).then(() => 'none', error => error.name)
    return { last: types.at(-1), name, text: (await ai.generateText({ model, prompt, temperature: 0 })).text }
  }, WHO.turns!.at(-1)![1])
  expect(found).toEqual({ last: 'abort', name: 'AbortError', text: WHO.greedy_text })
})

test('a model is loaded by its address, once, with its progress; wrong settings say which', async ({ harness: page }) => {
  await giveAi(page)
  const found = await page.evaluate(async ([url, prompt]) => {
    const { ai, aiSdk } = window
    const address = `${location.origin}${url}`
    const settings = { backend: 'cpu' } as const
    const model = aiSdk.tritloom(address, settings)
    const before = await model.availability()
    const seen: number[] = []
    const session = model.createSessionWithProgress(progress => seen.push(progress))
    const during = await model.availability()
    await session
    const other = aiSdk.tritloom(address, settings)
    const { text } = await ai.generateText({ model: other, prompt: prompt!, temperature: 0 })
    const after = await other.availability()
    // A model that is let go before it is stored is not whole.
    while (!(await window.tritloom.BitNet.cache.list()).some(({ complete }) => complete)) await new Promise(done => setTimeout(done, 20))
    await model.dispose()
    const fresh = aiSdk.createTritloom()(address, { backend: 'cpu', cache: 'only' })
    const stored = await fresh.availability()
    const wrong = aiSdk.tritloom(address, { contxt: 64 } as object)
    const failed = await ai.generateText({ model: wrong, prompt: 'Hello' }).then(() => 'none', error => `${error.code}: ${error.message}`)
    const missing = aiSdk.tritloom(`${address}.none`, settings)
    const gone = await missing.createSessionWithProgress().then(() => [], error => [error.code, ai.APICallError.isInstance(error), error.isRetryable])
    return { supported: aiSdk.doesBrowserSupportTritloom(), before, during, after, stored, seen, text, failed, gone }
  }, [GOLDEN_MODEL, WHO.turns!.at(-1)![1]])
  const { seen, ...rest } = found
  expect(rest).toMatchObject({
    supported: true, before: 'downloadable', during: 'downloading', after: 'available', stored: 'available', text: WHO.greedy_text,
    gone: ['http', true, false]
  })
  expect(rest.failed).toMatch(/^bad-option: .*contxt/)
  expect(seen[0]).toBe(0)
  expect(seen.at(-1)).toBe(1)
  expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b))
})
