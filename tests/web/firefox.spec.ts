// The package and the demos in Firefox. Their behaviour is tested in Chromium. These tests are
// about the parts that another WebGPU, other workers and another storage could break.
import { expect } from '@playwright/test'
import { expectAdapted } from './adapters'
import { expectChat, expectExtracts, expectText as expectSaid, withPolyfill } from './built-in-ai'
import { SLOW, WHO } from './demos'
import {
  expectAborts, expectChatDemo, expectDisposes, expectGoldens, expectResumes, expectSharedDownload, expectStoresLayers, expectText,
  expectWidgetDemo, WHO_ARE_YOU
} from './elsewhere'
import { expectVectors, MODELS } from './embeddings'
import { firefoxPath, test } from './firefox'
import { expectFormats } from './formats'
import { asked, bundledGoldens, GOLDEN_MODEL, goldensInOrder, load, loadFast, MIB, MODEL, sent } from './harness'
import type { InPage } from './harness'
import { beginnings, expectLogits } from './logits'
import { WIDE_SIZE } from './models.mjs'

// Setup installs Firefox where it can. Where it cannot, it says so, and the other tests still run.
test.skip(!firefoxPath, 'no Firefox, or none that is new enough')
test.setTimeout(300_000)

const press = (tab: InPage, selector: string) =>
  tab.evaluate(selector => document.querySelector<HTMLButtonElement>(selector)!.click(), selector)

/** Writes into a field. */
const write = (tab: InPage, selector: string, text: string) =>
  tab.evaluate(([selector, text]) => {
    const field = document.querySelector<HTMLInputElement>(selector)!
    field.value = text
    field.dispatchEvent(new Event('input', { bubbles: true }))
  }, [selector, text] as const)

/** Chooses a file. */
const give = (tab: InPage, selector: string, name: string, text: string) =>
  tab.evaluate(([selector, name, text]) => {
    const given = new DataTransfer()
    given.items.add(new File([text], name, { type: 'text/plain' }))
    const input = document.querySelector<HTMLInputElement>(selector)!
    input.files = given.files
    input.dispatchEvent(new Event('change', { bubbles: true }))
  }, [selector, name, text] as const)

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
  await expectGoldens(tab, WHO_ARE_YOU)
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
  await expectGoldens(tab, WHO_ARE_YOU)
  await tab.evaluate(() => (window as unknown as { allowRelaxed(): void }).allowRelaxed())
})

test('gives them on several threads', async ({ tabs: [, , isolated] }) => {
  const info = await load(isolated, { backend: 'cpu', threads: 2, strict: true, template: 'builtin' }, GOLDEN_MODEL)
  expect(info).toMatchObject({ threads: 2, kernels: expect.arrayContaining(['I2_S/relaxed-simd']) })
  await expectGoldens(isolated, WHO_ARE_YOU)
})

test('each architecture has its logits within this browser’s limits', async ({ tabs: [tab] }) => {
  for (const one of beginnings) await expectLogits(tab, one, false)
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

// Over ten seconds, because each load has a device of its own.
test('a GPU that holds only a part of the model gives the same, with the other layers in storage', async ({ tabs: [tab] }) => {
  await expectStoresLayers(tab)
})

test('logits with adapters are those of another program', async ({ tabs: [tab] }) => {
  await expectAdapted(tab, 'bitnet-b1.58-embd-q6_k')
})

test('vectors are those of another program, in passes of many texts', async ({ tabs: [tab] }) => {
  for (const name of MODELS) await expectVectors(tab, name)
})

test('an abort ends a generation, and the next one is right', async ({ tabs: [tab] }) => {
  await load(tab, {}, GOLDEN_MODEL)
  await expectAborts(tab)
})

test('a download that was aborted goes on where it was, and then works offline', async ({ tabs: [tab] }) => {
  await expectResumes(tab)
})

test('on a fast connection two threads make the requests', async ({ tabs: [tab] }) => {
  const seen = await loadFast(tab)
  expect(seen.filter(request => asked(request)[1] === 8 * MIB).length).toBeGreaterThan(2)
  expect(sent(seen)).toBe(WIDE_SIZE)
})

test('two tabs download once', ({ tabs }) => expectSharedDownload(tabs))

test('a disposed model refuses, and what it held is free for the next', ({ tabs: [tab] }) => expectDisposes(tab))

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

test('the chat demo answers', ({ tabs: [tab] }) => expectChatDemo(tab, 'relaxed-simd'))

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

test('the TL;DR demo sums up its story', ({ tabs: [tab] }) => expectWidgetDemo(tab, 'webgpu'))

test('the landing page answers, the live examples run, and the lines of a widget are written', async ({ tabs: [tab] }) => {
  await tab.open('/dist/index.html')
  await press(tab, '#run')
  await expectText(tab, '#speed', /tokens\/s on your processor/)
  await expectText(tab, '#answer', 'Once upon a time')

  await tab.open('/dist/examples/index.html')
  for (const [title, output] of [['Data by a schema', /^\{"animal":"(cat|dog|fox)","legs":[0-8]\}$/], ['What a text costs', /^\d+ tokens of 1024$/]] as const) {
    await press(tab, `button[aria-label="Run: ${title}"]`)
    await expectText(tab, `[aria-label="Output: ${title}"]`, output)
  }

  await tab.open('/dist/widget/index.html')
  await tab.evaluate(() => {
    document.querySelector<HTMLSelectElement>('[name=lang]')!.value = 'fr'
    document.querySelector<HTMLInputElement>('#own-accent')!.checked = true
    document.querySelector('#wishes')!.dispatchEvent(new Event('input'))
  })
  await expectText(tab, '#lines', /<tldr-widget lang="fr" style="--tldr-accent: #0a5c93; --tldr-on-accent: #ffffff"><\/tldr-widget>$/)
  const shown = () => tab.evaluate(() => document.querySelector('#preview')!.shadowRoot!.querySelector<HTMLElement>('#summarize')!.innerText)
  await expect.poll(shown).toBe('Résumer')
})

test('the lab looks into a file and into a text', async ({ tabs: [tab] }) => {
  await tab.open('/dist/lab/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await press(tab, '#weights-bundled')
  await expectText(tab, '#weights-facts', / · 90 tensors$/)
  await press(tab, '#weights-read')
  await expectText(tab, '#weights-facts', /all ternary weights read: −1 33\.0 %, 0 33\.8 %, \+1 33\.2 %$/)
  await tab.evaluate(() => {
    for (const name of ['activations', 'attention']) document.querySelector<HTMLInputElement>(`#inspect-${name}`)!.checked = true
  })
  await press(tab, '#inspect-start')
  await expectText(tab, '#token-list', /river/)
  const found = await tab.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>('#attention-canvas')!
    return { tokens: document.querySelectorAll('#token-list button').length, size: [canvas.width, canvas.height] }
  })
  expect(found.size).toEqual([found.tokens, found.tokens])
  await expectText(tab, '#activations-table', /attention/)
})

test('the chat demo imports and finds a chat, shows Markdown, and takes a file', async ({ tabs: [tab] }) => {
  await tab.open('/dist/chat/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await give(tab, '#import-file', 'a.md', '# Zebras\n\n## You\n\nA plan?\n\n## Model\n\n| a | b |\n|---|---|\n| 1 | **2** |\n')
  await expectText(tab, '[role=log] .assistant td strong', /^2$/)
  await write(tab, '#search', 'zebras')
  await expectText(tab, '#chat-count', '1 found')
  await expectText(tab, '#chat-list', /Zebras/)
  await write(tab, '#search', '')

  await give(tab, '#attach-file', 'b.txt', 'The dog is blue.')
  await expectText(tab, '#attached', 'b.txt×')
  await write(tab, '#max-tokens', '4')
  await write(tab, '#prompt', 'Who are you?')
  await press(tab, '#send')
  await expectText(tab, '[role=log] .turn:last-of-type .figures', /^4 tokens/)
  await expectText(tab, '[role=log] .file summary', 'b.txt · 16 bytes')
})

test('the search page finds a file, and the page for the Prompt API answers', async ({ tabs: [tab] }) => {
  await tab.open('/dist/search/index.html')
  await expect.poll(() => tab.evaluate(() => document.querySelector<HTMLInputElement>('#files')!.disabled), SLOW).toBe(false)
  await give(tab, '#files', 'notes.txt', 'The ferry leaves at nine.')
  await expectText(tab, '#sources', /notes\.txt/)
  await write(tab, '#query', 'When does the ferry leave?')
  await press(tab, '#find')
  await expectText(tab, '#results', /notes\.txtThe ferry leaves at nine\.$/)

  await tab.open('/dist/built-in-ai/index.html')
  await expectText(tab, '#state', /model/)
  await tab.evaluate(() => { window.confirm = () => true })
  await write(tab, '#question', 'Who are you?')
  await press(tab, '#ask')
  await expectText(tab, '#state', /^\d+ of 1024 tokens of this conversation are used\.$/)
  await expectText(tab, '#answer', /\w/)
})
