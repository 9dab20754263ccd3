// `tritloom/built-in-ai` with a real model, in pages that were written for Chrome's Prompt API. Its calls, events and
// errors are tested without a browser in tests/pkg; Firefox shows the same pages in firefox.spec.ts.
import { test } from '@playwright/test'
import { ask, askForWords, expectChat, expectExtracts, expectText, expectUnchanged, untilStored, withPolyfill } from './built-in-ai'
import { expect, GOLDEN_MODEL, heldHalfway, MODEL, scripted } from './harness'

// The GPU is a program here: so the CPU computes.
// All that Playwright evaluates counts as a click: tests/pkg has what happens without one.
test('a chat for the Prompt API runs unchanged', async ({ page }) => {
  expectUnchanged()
  const fetched: string[] = []
  page.on('request', request => { if (request.method() === 'GET') fetched.push(request.url()) })
  await page.goto(withPolyfill('chat'))
  await expectText(page, 'state', 'downloadable')
  expect(fetched.filter(url => url.endsWith('.gguf'))).toEqual([])
  await expectChat(page)
  await untilStored(page)
  await page.reload()
  await expectText(page, 'state', 'available')
})

test('a page that reads reviews runs unchanged', async ({ page }) => {
  await page.goto(withPolyfill('extract', '&asks=no'))
  await expect(page.locator('#go')).toBeVisible()
  await expectExtracts(page)
})

test('a page that closes in the middle of a load or of an answer leaves the model to the next', async ({ page, context }) => {
  const held = await scripted({ evaluate: page.evaluate.bind(page), url: () => test.info().project.use.baseURL! }, heldHalfway(), MODEL)
  const chat = withPolyfill('chat', `&asks=no&most=200&model=${held.path}`)
  const loading = await context.newPage()
  await loading.goto(chat)
  await expectText(loading, 'state', 'downloadable')
  await ask(loading, 'Who are you?')
  await expect.poll(async () => (await held.requests()).length).toBeGreaterThan(5)
  await loading.close()
  await held.release()
  const answering = await context.newPage()
  await answering.goto(chat)
  await expectText(answering, 'state', 'downloadable')
  await ask(answering, 'Who are you?')
  await expectText(answering, 'state', 'answered after 0 to 1')
  await untilStored(answering)
  // More than a hundred words are still to come.
  expect(await askForWords(answering, 'Tell me a story.')).toBe('answering')
  await answering.close()
  await page.goto(chat)
  await expectText(page, 'state', /^available$/)
  await ask(page, 'Who are you?')
  await expectText(page, 'state', 'answered after 0 to 1')
})

test('without WebGPU the CPU answers, and without both nothing is available', async ({ page }) => {
  await page.addInitScript(() => { delete (Navigator.prototype as { gpu?: unknown }).gpu })
  await page.goto(withPolyfill('chat', `&asks=no&model=${GOLDEN_MODEL}`))
  await expectText(page, 'state', 'downloadable')
  await ask(page, 'Who are you?')
  await expectText(page, 'state', 'answered after 0 to 1')
  await page.addInitScript(() => { WebAssembly.validate = () => false })
  await page.goto(withPolyfill('chat', `&asks=no&model=${GOLDEN_MODEL}`))
  await expectText(page, 'state', 'unavailable')
  await ask(page, 'Who are you?')
  await expectText(page, 'state', 'NotSupportedError')
})

test('tools, decisions and the same text each time', async ({ page }) => {
  await page.goto('/tests/web/harness.html')
  const found = await page.evaluate(async ([url, entry]) => {
    const { configure, DecisionModel, LanguageModel } = await import(entry!) as typeof import('../../pkg/built-in-ai.js')
    configure({ url: url!, mayDownload: true, answers: { maxTokens: 60 } })
    const inputSchema = { type: 'object', properties: { level: { enum: [1, 2, 3] } }, required: ['level'], additionalProperties: false }
    const dim = { name: 'dim', description: 'Dims the lamp.', inputSchema }
    const content = [{ type: 'text' as const, value: 'It is too bright.' }]
    const open = await LanguageModel.create({
      tools: [dim], expectedInputs: [{ type: 'tool-response' }], expectedOutputs: [{ type: 'tool-call' }], samplingMode: 'most-predictable'
    })
    const closed = await LanguageModel.create({ tools: [{ ...dim, execute: () => 'done' }], samplingMode: 'most-predictable' })
    // The toy calls no tool by itself, so both answers are texts. Arguments are tested in tools.spec.ts.
    const [one, two] = await Promise.all([open.prompt([{ role: 'user', content }]), closed.prompt([{ role: 'user', content }])])
    const plain = await LanguageModel.create({ samplingMode: 'most-predictable' })
    const texts = await Promise.all([plain.clone(), plain.clone()].map(async copy => (await copy).prompt('Who are you?')))
    const decider = await DecisionModel.create({
      questions: [{ id: 'kind', prompt: 'What is it?', type: 'choice', options: [{ label: 'cat' }, { label: 'dog' }] }]
    })
    const { kind } = await decider.decide('It barks.')
    return { kinds: [one, two].map(answer => typeof answer), texts, decision: kind! }
  }, [MODEL, '/pkg/built-in-ai.js'])
  expect(found.texts[0]).toMatch(/\w/)
  expect(found.texts[1]).toBe(found.texts[0])
  expect(found.kinds).toEqual(['string', 'string'])
  const { label, confidence, probabilities: { cat, dog } } = found.decision
  expect(cat! + dog!).toBeCloseTo(1)
  expect([label, confidence]).toEqual(cat! > dog! ? ['cat', cat] : ['dog', dog])
})
