// The npm package `ai` in a page. Most tests with it are in tests/ai-sdk/, and need no page.
import { giveAi } from './ai'
import { expect, GOLDEN_MODEL, goldens, load, test } from './harness'

test.use({ backend: 'cpu' })

const WHO = goldens.find(({ name }) => name === 'who')!

test('generateText and streamText give the golden text, and the usage', { tag: '@quick' }, async ({ shared: page }) => {
  await load(page, {}, GOLDEN_MODEL)
  await giveAi(page)
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
