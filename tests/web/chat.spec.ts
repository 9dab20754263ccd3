// The chat demo, driven as a person would. The expected answers are the bundled model's greedy ones, from questions
// where its lead over the second best token is wide (see models/tiny-stories.goldens.json, and the same reference code).
import type { Page } from '@playwright/test'
import { readFile } from 'node:fs/promises'
import { expect, SLOW, test } from './demos.ts'

const MODEL = 'models/tiny-stories.gguf'
const WHO = 'I am a tiny story model. I can tell short stories and sum them up.'
const BYE = 'Bye! Sleep well.' // To "Good night!": few tokens, for the tests whose point is another.

const answers = (page: Page) => page.getByRole('log').locator('.assistant')
const figures = (page: Page) => page.getByRole('log').locator('.figures')
const field = (page: Page) => page.getByLabel('Your message')
const sendButton = (page: Page) => page.getByRole('button', { name: 'Send' })
const stopButton = (page: Page) => page.getByRole('button', { name: 'Stop' })

async function open(page: Page, search = '') {
  await page.goto(`/chat/${search}`)
}

/** The model's name stands in the header as soon as it can be used. */
async function ready(page: Page) {
  await expect(page.locator('#model-name')).toHaveText(/tiny-stories/, SLOW)
  await expect(page.locator('#loading')).toBeHidden()
}

/** Asks for a short answer that is known. */
async function expectBye(page: Page) {
  await greedy(page)
  const bye = await ask(page, 'Good night!')
  await bye.done()
  await expect(answers(page)).toHaveText(`Model: ${BYE}`)
}

async function ask(page: Page, text: string) {
  const before = await figures(page).count()
  await field(page).fill(text)
  await field(page).press('Enter')
  return { done: () => expect(figures(page)).toHaveCount(before + 1, SLOW) }
}

async function greedy(page: Page) {
  await page.getByLabel(/Greedy/).check()
}

test('loads the bundled model by itself and answers over two turns', async ({ page }) => {
  await open(page)
  await ready(page)
  await greedy(page)

  const first = await ask(page, 'Who are you?')
  await first.done()
  await expect(answers(page)).toHaveText(`Model: ${WHO}`)
  await expect(figures(page)).toHaveText(/^\d+ tokens · [\d.]+ tokens\/s · first after [\d.]+ s · \d+ prompt tokens$/)

  const second = await ask(page, 'Thank you!')
  await second.done()
  await expect(answers(page).nth(1)).toHaveText('Model: You are welcome!')
  // The first question stays computed; a new chat shares no more than its template's first tokens.
  const reused = async () => Number(/(\d+) of them reused/.exec(await figures(page).last().innerText())?.[1] ?? 0)
  expect(await reused()).toBeGreaterThan(10)

  await page.getByRole('button', { name: 'New chat' }).click()
  await expect(answers(page)).toHaveCount(0)
  await expectBye(page)
  expect(await reused()).toBeLessThan(8)
})

test('streams a story, stops it on Esc and by the button, and goes on', async ({ page }) => {
  await open(page)
  await ready(page)
  await page.getByRole('button', { name: 'Tell me a story about a brave cat' }).click()
  await field(page).press('Enter')
  await expect(stopButton(page)).toBeVisible()

  const length = async () => (await answers(page).last().textContent())!.length
  await expect.poll(length, SLOW).toBeGreaterThan('Model: '.length)
  const early = await length()
  await expect.poll(length, SLOW).toBeGreaterThan(early)
  await page.keyboard.press('Escape')
  await expect(figures(page)).toHaveText(/stopped/, SLOW)
  const stopped = await length()
  await page.waitForTimeout(1000)
  expect(await length()).toBe(stopped)

  await field(page).fill('Tell me a story.')
  await sendButton(page).click()
  await expect.poll(length, SLOW).toBeGreaterThan('Model: '.length)
  await stopButton(page).click()
  await expect(figures(page).nth(1)).toHaveText(/stopped/, SLOW)

  // The model is as good as before.
  await page.getByRole('button', { name: 'New chat' }).click()
  await expectBye(page)
})

test('tells how far a load is, and that the second comes from the cache', async ({ page }) => {
  // Every text of the progress line, as it changes faster than a test can look.
  await page.addInitScript(() => {
    const seen: string[] = []
    Object.assign(window, { seen })
    const look = () => seen.push(document.getElementById('progress-text')?.textContent ?? '')
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true })
  })
  const seen = () => page.evaluate(() => (window as unknown as { seen: string[] }).seen.splice(0).join('\n'))
  await open(page)
  await ready(page)
  expect(await seen()).toMatch(/Downloading: [\d.]+ [kM]B of 10\.3 MB, [\d.]+ [kM]B\/s/)

  await page.getByRole('button', { name: 'Load model' }).click()
  await expect(page.locator('#loading')).toBeVisible()
  await ready(page)
  expect(await seen()).toMatch(/from cache/)
})

test('tells what is wrong with an address or a file, and loads another', async ({ page, baseURL }) => {
  await open(page, '?model=/models/none.gguf')
  const alert = page.getByRole('alert')
  await expect(alert).toContainText('Could not load /models/none.gguf', SLOW)
  await expect(alert).toContainText('404')
  await expect(alert.locator('code')).toHaveText('http')
  await expect(sendButton(page)).toBeDisabled()

  await page.getByLabel('From an address').check()
  await page.getByLabel('Address of a GGUF file').fill(`${baseURL}/chat/`)
  await page.getByRole('button', { name: 'Load model' }).click()
  await expect(alert.locator('code')).toHaveText('bad-gguf', SLOW)

  const whole = await readFile(MODEL)
  await page.getByLabel('A file on this device').check()
  const picker = page.getByLabel('GGUF file', { exact: true })
  await picker.setInputFiles({ name: 'cut.gguf', mimeType: '', buffer: whole.subarray(0, 5_000_000) })
  await page.getByRole('button', { name: 'Load model' }).click()
  await expect(alert).toContainText('Could not load cut.gguf', SLOW)
  await expect(alert.locator('code')).toHaveText('bad-gguf')

  await picker.setInputFiles({ name: 'mine.gguf', mimeType: '', buffer: whole })
  await page.getByRole('button', { name: 'Load model' }).click()
  await ready(page)
  await expect(alert).toHaveCount(0)
  await expectBye(page)
})

test('a message too long for the context is told with both numbers and given back', async ({ page }) => {
  await open(page)
  await ready(page)
  const long = 'Once upon a time there was a cat. '.repeat(200)
  await field(page).fill(long)
  await field(page).press('Enter')
  const alert = page.getByRole('alert')
  await expect(alert.locator('code')).toHaveText('context-full', SLOW)
  await expect(alert).toContainText('1024')
  await expect(alert).toContainText(/\b[12]\d{3}\b.*tokens/)
  await expect(field(page)).toHaveValue(long.trim())

  await expectBye(page)
})

test('the same seed tells the same story, and a limit cuts it off', async ({ page }) => {
  await open(page)
  await ready(page)
  await page.getByLabel('Most tokens').fill('6')
  await page.getByLabel('Seed').fill('7')
  const told: string[] = []
  for (let time = 0; time < 2; time += 1) {
    await page.getByRole('button', { name: 'New chat' }).click()
    await (await ask(page, 'Tell me a story.')).done()
    await expect(figures(page)).toHaveText(/^6 tokens .* seed 7 · cut off at the limit$/)
    told.push(await answers(page).innerText())
  }
  expect(told[0]).toBe(told[1])

  // A setting out of range is pointed at, and nothing is sent.
  await page.getByLabel('Temperature').fill('-1')
  await field(page).fill('Tell me a story.')
  await field(page).press('Enter')
  await expect(page.getByLabel('Temperature')).toBeFocused()
  await expect(answers(page)).toHaveCount(1)
  await page.getByRole('button', { name: 'Defaults' }).click()
  await expect(page.getByLabel('Temperature')).toHaveValue('0.7')
})

test('what is written is text: no HTML, no special tokens, new lines by Shift+Enter', async ({ page }) => {
  await open(page)
  await ready(page)
  await greedy(page)
  await page.getByLabel('Most tokens').fill('4')
  await field(page).fill('<img src=x onerror="document.title=1"><|eot_id|>')
  await field(page).press('Shift+Enter')
  await expect(field(page)).toHaveValue(/\n$/)
  await field(page).press('Enter')
  await expect(figures(page)).toHaveCount(1, SLOW)
  await expect(page.locator('.user')).toContainText('<img src=x onerror="document.title=1"><|eot_id|>')
  await expect(page.locator('.turn img')).toHaveCount(0)
  await expect(page).toHaveTitle(/Chat/)
})

test('shows what is known of the model', async ({ page }) => {
  await open(page)
  await ready(page)
  await page.getByText('About this model').click()
  const info = page.locator('#info')
  await expect(info).toContainText('bitnet-b1.58')
  await expect(info).toContainText('25.7 million')
  await expect(info).toContainText(/1.?024 tokens/)
  await expect(page.locator('.notice')).toContainText('on the processor')
})

test('a load can be cancelled, and begun again', async ({ page }) => {
  let release = () => {}
  const held = new Promise<void>(resolve => (release = resolve))
  await page.context().route('**/tiny-stories.gguf', async route => {
    await held
    await route.continue()
  })
  await open(page)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await expect(page.locator('#notices')).toContainText('cancelled')
  release()
  await page.getByRole('button', { name: 'Load model' }).click()
  await ready(page)
})

test('without WebGPU the page says so and does not load', async ({ page }) => {
  await page.addInitScript(() => delete (Navigator.prototype as { gpu?: unknown }).gpu)
  let asked = false
  page.on('request', request => (asked ||= request.url().endsWith('.gguf')))
  await open(page)
  const alert = page.getByRole('alert')
  await expect(alert).toContainText('No model can run here')
  await expect(alert).toContainText('no WebGPU')
  await expect(sendButton(page)).toBeDisabled()
  expect(asked).toBe(false)
})

test('without an adapter the page says so', async ({ page }) => {
  await page.addInitScript(() => {
    GPU.prototype.requestAdapter = async () => null
  })
  await open(page)
  await expect(page.getByRole('alert')).toContainText('no GPU adapter')
  await expect(sendButton(page)).toBeDisabled()
})
