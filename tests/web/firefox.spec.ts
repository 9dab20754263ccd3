// The package and the demos in Firefox. Their behaviour is tested in Chromium. These tests are
// about the parts that another WebGPU, other workers and another storage could break.
import { expectChat, expectExtracts, expectText as expectSaid, withPolyfill } from './built-in-ai'
import { SLOW, STORY, WHO } from './demos'
import { expect, firefoxPath, test } from './firefox'
import type { FirefoxTab } from './firefox'
import { expectFormats } from './formats'
import {
  asked, bundledGoldens, continuation, expectedIds, expectRandomModel, failure, GOLDEN_MODEL, goldens,
  goldensInOrder, heldHalfway, load, loadFailure, loadFast, loadReporting, MIB, MODEL, scripted, sent, server,
  SIZE, SPREAD_MODEL, storedModels
} from './harness'
import type { Golden } from './harness'
import { WIDE_SIZE } from './models.mjs'

// Setup installs Firefox where it can. Where it cannot, it says so, and the other tests still run.
test.skip(!firefoxPath, 'no Firefox, or none that is new enough')
test.setTimeout(300_000)

const expectGoldens = async (tab: FirefoxTab, goldens: Golden[]) => {
  expect(goldens).not.toEqual([])
  for (const golden of goldens) {
    expect(await continuation(tab, golden), golden.name).toMatchObject({
      promptTokens: golden.ids.length, ids: expectedIds(golden), text: golden.greedy_text
    })
  }
}

test('an adapter without a name is known for a CPU', async ({ tabs: [tab] }) => {
  const found = await tab.evaluate(() => window.tritloom.BitNet.availability())
  expect(found).toMatchObject({ available: true, software: true })
  expect(found.adapter).toBe('')
  const { adapter, kernels } = await load(tab, {}, GOLDEN_MODEL)
  expect(adapter).toBe('')
  // A card has kernels of its own; this browser has no subgroups.
  expect(kernels).toContain('attention')
  expect(kernels.filter(name => name.includes('subgroup'))).toEqual([])
})

test('gives the golden texts, in a worker and in this thread', async ({ tabs: [tab] }) => {
  await load(tab, {}, GOLDEN_MODEL)
  await expectGoldens(tab, goldensInOrder)
  await load(tab, { worker: false }, GOLDEN_MODEL)
  await expectGoldens(tab, goldens.filter(({ name }) => name === 'who'))
})

test('gives them on the CPU too, in each of its modules', async ({ tabs: [tab] }) => {
  const { backend, kernels } = await load(tab, { backend: 'cpu' }, GOLDEN_MODEL)
  expect({ backend, kernels }).toEqual({ backend: 'cpu', kernels: expect.arrayContaining(['I2_S/relaxed-simd']) })
  await expectGoldens(tab, goldensInOrder)
  await tab.evaluate(() => {
    const { validate } = WebAssembly
    // The bytes that relaxed SIMD is known by.
    WebAssembly.validate = bytes => bytes.byteLength !== 36 && validate(bytes)
    Object.assign(window, { allowRelaxed: () => { WebAssembly.validate = validate } })
  })
  expect((await load(tab, { backend: 'cpu', worker: false }, GOLDEN_MODEL)).kernels).toContain('I2_S/simd128')
  await expectGoldens(tab, goldens.filter(({ name }) => name === 'who'))
  await tab.evaluate(() => (window as unknown as { allowRelaxed(): void }).allowRelaxed())
})

test('gives them on several threads', async ({ tabs: [, , isolated] }) => {
  const info = await load(isolated, { backend: 'cpu', threads: 2, strict: true, template: 'builtin' }, GOLDEN_MODEL)
  expect(info).toMatchObject({ threads: 2, kernels: expect.arrayContaining(['I2_S/relaxed-simd']) })
  await expectGoldens(isolated, goldens.filter(({ name }) => name === 'who'))
})

test('the same seed draws the same text, another seed another', async ({ tabs: [tab] }) => {
  await load(tab, {}, GOLDEN_MODEL)
  for (const narrowed of [{}, { topK: 50, topP: 0.95 }]) {
    const [text, again, other] = await tab.evaluate(async narrowed => {
      const draw = (seed: number) =>
        window.model.generate('Once there was', { raw: true, temperature: 20, maxTokens: 8, seed, ...narrowed }).text()
      return [await draw(7), await draw(7), await draw(8)]
    }, narrowed)
    expect(text).not.toBe('')
    expect(again).toBe(text)
    expect(other).not.toBe(text)
  }
})

test('answers keep to their formats', async ({ tabs: [tab] }) => {
  await expectFormats(tab, GOLDEN_MODEL, true)
})

test('an abort ends a generation, and the next one is right', async ({ tabs: [tab] }) => {
  await load(tab, {}, GOLDEN_MODEL)
  const found = await tab.evaluate(async () => {
    const abort = new AbortController()
    const generation = window.model.generate('Once there was', { raw: true, signal: abort.signal })
    const failed = generation.text().catch((error: Error) => error.message)
    for await (const _ of generation.tokens()) {
      abort.abort(new Error('enough'))
      break
    }
    return { failed: await failed, reason: (await generation.stats).finishReason }
  })
  expect(found).toEqual({ failed: 'enough', reason: 'abort' })
  await expectGoldens(tab, goldens.filter(({ name }) => name === 'who'))
})

test('a download that was aborted goes on where it was, and then works offline', async ({ tabs: [tab] }) => {
  const { path, url, rewrite, requests } = await scripted(tab, heldHalfway())
  const stopped = await tab.evaluate(async ([path, bytes]) => {
    const { cache } = window.tritloom.BitNet
    const abort = new AbortController()
    const loading = window.load(path, { signal: abort.signal }).catch((error: Error) => error.message)
    const stored = async () => (await cache.list()).find(({ url }) => url.endsWith(path))?.bytes ?? 0
    while (await stored() < bytes) await new Promise(resolve => setTimeout(resolve, 20))
    abort.abort(new Error('enough'))
    return loading
  }, [path, 5 * MIB] as const)
  expect(stopped).toBe('enough')
  expect((await loadFailure(tab, path, { cache: 'only' })).code).toBe('not-cached')

  await rewrite({})
  const { notes } = await loadReporting(tab, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: expect.any(Number) }])
  expect(sent(await requests())).toBe(SIZE - (notes[0] as { bytes: number }).bytes)
  await expectRandomModel(tab)

  await server(tab, 'off')
  try {
    for (const cache of ['use', 'only'] as const) {
      await load(tab, { cache }, path)
      await expectRandomModel(tab)
    }
  } finally {
    await server(tab, 'on')
  }
  const stored = await storedModels(tab)
  expect(stored.find(model => model.url === url)).toMatchObject({ bytes: SIZE, complete: true })
  const verdict = await tab.evaluate(path => window.tritloom.BitNet.cache.verify(path), path)
  expect(verdict).toMatchObject({ bytes: SIZE, damagedBytes: 0 })
})

test('on a fast connection two threads make the requests', async ({ tabs: [tab] }) => {
  const seen = await loadFast(tab)
  expect(seen.filter(request => asked(request)[1] === 8 * MIB).length).toBeGreaterThan(2)
  expect(sent(seen)).toBe(WIDE_SIZE)
})

test('two tabs download once', async ({ tabs: [tab, other] }) => {
  const { path, release, requests } = await scripted(tab, heldHalfway())
  const first = loadReporting(tab, path)
  await expect.poll(async () => (await requests()).length).toBeGreaterThan(5)
  const second = loadReporting(other, path)
  await expect.poll(() => other.evaluate(() => window.progress?.notes.map(({ kind }) => kind), undefined)).toEqual(['waiting'])
  await release()
  expect([(await first).kinds, (await second).kinds]).toEqual([[], ['waiting']])
  expect(sent(await requests())).toBe(SIZE)
  await expectRandomModel(tab)
  await expectRandomModel(other)
})

test('a disposed model refuses, and what it held is free for the next', async ({ tabs: [tab] }) => {
  await load(tab, {}, SPREAD_MODEL)
  const work = `
    const running = model.generate('Once', { raw: true }).text()
    await model.dispose()
    await running`
  expect((await failure(tab, work)).code).toBe('disposed')
  expect((await failure(tab, `await model.tokenize('x')`)).code).toBe('disposed')
  await load(tab, {}, SPREAD_MODEL)
  await expectRandomModel(tab)
})

test('the bundled model gives golden texts where their lead is clear', async ({ tabs: [tab] }) => {
  await load(tab, {}, MODEL)
  await expectGoldens(tab, bundledGoldens.prompts.filter(({ name }) => name === 'who'))
})

test('pages for Chrome\'s Prompt API run unchanged', async ({ tabs: [tab] }) => {
  await tab.open(withPolyfill('chat', '&asks=no'))
  await expectSaid(tab, 'state', /^(available|downloadable)$/)
  await expectChat(tab)
  await tab.open(withPolyfill('extract', '&asks=no'))
  await expectSaid(tab, 'go', 'Read it')
  await expectExtracts(tab)
})

/** Waits for a text in an element. */
const expectText = (tab: FirefoxTab, selector: string, text: string | RegExp) =>
  expect.poll(() => tab.evaluate(selector => document.querySelector(selector)?.textContent ?? '', selector), SLOW).toMatch(text)

test('the chat demo answers', async ({ tabs: [tab] }) => {
  await tab.open('/dist/chat/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await expectText(tab, '#notices', /The processor computes here, which is slower than a graphics card/)
  await expectText(tab, '#info', /the CPU with relaxed-simd/)
  await tab.evaluate(() => {
    document.querySelector<HTMLInputElement>('#greedy')!.click()
    const field = document.querySelector<HTMLTextAreaElement>('#prompt')!
    field.value = 'Who are you?'
    field.dispatchEvent(new Event('input'))
    document.querySelector<HTMLButtonElement>('#send')!.click()
  })
  await expectText(tab, '[role=log] .figures', /tokens\/s/)
  await expectText(tab, '[role=log] .assistant', `Model: ${WHO}`)
  // Another branch, which a reload finds again.
  const press = (name: string) => tab.evaluate(name => {
    const buttons = [...document.querySelectorAll<HTMLButtonElement>('[role=log] .turn:last-of-type .actions button')]
    buttons.find(({ textContent }) => textContent === name)!.click()
  }, name)
  await press('Regenerate')
  await expectText(tab, '[role=log] .turn:last-of-type .actions', /2\/2.*Continue/)
  await tab.open('/dist/chat/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await expectText(tab, '[role=log] .assistant', `Model: ${WHO}`)
  await expectText(tab, '#chat-list', /Who are you/)
})

test('the chat with the AI SDK answers', async ({ tabs: [tab] }) => {
  await tab.open('/dist/ai-chat/index.html')
  await expectText(tab, 'form button.primary', 'Send')
  await tab.evaluate(() => {
    const field = document.querySelector<HTMLInputElement>('#text')!
    // React hears of a text only if the browser's own setter has set it.
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!.call(field, 'Who are you?')
    field.dispatchEvent(new Event('input', { bubbles: true }))
    document.querySelector<HTMLButtonElement>('form button.primary')!.click()
  })
  await expectText(tab, '[role=log] .assistant', WHO)
  await expectText(tab, 'form button', 'Send')
})

test('the form demo fills its form', async ({ tabs: [tab] }) => {
  await tab.open('/dist/form/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await tab.evaluate(() => {
    const field = document.querySelector<HTMLTextAreaElement>('#schema')!
    field.value = JSON.stringify({ type: 'array', items: { enum: ['cat', 'dog'] }, minItems: 2, maxItems: 2 })
    field.dispatchEvent(new Event('input'))
    document.querySelector<HTMLButtonElement>('#fill')!.click()
  })
  await expectText(tab, '#outcome', 'The record is valid by the schema.')
  const found = await tab.evaluate(() => ({
    chosen: [...document.querySelectorAll<HTMLSelectElement>('#record select')].map(({ selectedOptions }) => selectedOptions[0]!.text),
    json: document.querySelector('#json')!.textContent
  }))
  expect(found.chosen).toHaveLength(2)
  expect(JSON.parse(found.json)).toEqual(found.chosen)
})

test('the demo with tools calls one', async ({ tabs: [tab] }) => {
  await tab.open('/dist/tools/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await tab.evaluate(() => {
    document.querySelector<HTMLSelectElement>('#choice')!.value = 'set_theme'
    const field = document.querySelector<HTMLTextAreaElement>('#prompt')!
    field.value = 'It is too bright here'
    field.dispatchEvent(new Event('input'))
    document.querySelector<HTMLButtonElement>('#ask')!.click()
  })
  await expectText(tab, '.call .result', 'The colours are ')
  const found = await tab.evaluate(() => ({
    args: document.querySelector('.call .arguments')!.textContent, theme: document.documentElement.dataset.theme
  }))
  expect(JSON.parse(found.args)).toEqual({ theme: found.theme })
})

test('the TL;DR demo sums up its story', async ({ tabs: [tab] }) => {
  await tab.open('/dist/tldr/index.html')
  const inWidget = (selector: string) =>
    tab.evaluate(selector => document.querySelector('tldr-widget')!.shadowRoot!.querySelector(selector)!.textContent, selector)
  await tab.evaluate(() => document.querySelector('tldr-widget')!.shadowRoot!.querySelector<HTMLButtonElement>('#summarize')!.click())
  await expect.poll(() => inWidget('#note'), SLOW).toMatch(/tokens\/s/)
  expect(await inWidget('#summary')).toBe(STORY)
})
