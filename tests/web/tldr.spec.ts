// The TL;DR demo, driven as a person would. The expected summaries are the bundled model's greedy ones, each with a
// lead of 0.45 or more at every step.
import type { Page } from '@playwright/test'
import { expect, SLOW, test } from './demos.ts'

const STORY = 'Daisy lost her silver bell at the river, and Ben helped her find it next to an old log.'
const OWN_TEXT = `Mia wanted to go to the beach, but it was raining. She was sad. Her brother Ben said, "Let's build a fort!" They built a big fort with pillows. They read books in it all day. When the sun came out, they did not even see it. It was the best day.`
const OWN = 'Mia and Ben could not go to the beach because of bad weather, so they built a fort instead and had fun.'

const button = (page: Page) => page.getByRole('button', { name: 'Sum it up' })
const summary = (page: Page) => page.locator('tldr-widget #summary')
const note = (page: Page) => page.locator('tldr-widget #note')
const error = (page: Page) => page.locator('tldr-widget').getByRole('alert')

async function sumUpOwn(page: Page, text: string) {
  const label = page.getByText('Sum up your own text')
  if (!(await page.getByLabel('Your text').isVisible())) await label.click()
  await page.getByLabel('Your text').fill(text)
  await page.getByRole('button', { name: 'Sum up this text' }).click()
}

/** Enough where another test reads it to its end: a software adapter writes a token or two in a second. */
async function expectBeginningOf(page: Page, whole: string) {
  await expect.poll(async () => (await summary(page).textContent())!.length, SLOW).toBeGreaterThan(8)
  expect(whole.startsWith((await summary(page).textContent())!)).toBe(true)
}

test('one click sums up the story, and loads the model only then', async ({ page }) => {
  const asked: string[] = []
  page.on('request', request => asked.push(request.url()))
  // As on a page that embeds the widget without `preload`.
  await page.route('**/tldr/', async route => {
    const response = await route.fetch()
    await route.fulfill({ response, body: (await response.text()).replace(' preload>', '>') })
  })
  await page.goto('/tldr/')
  await expect(button(page)).toBeEnabled()
  expect(asked.filter(url => url.endsWith('.gguf'))).toEqual([])

  // What the page around the widget gets to know.
  await page.evaluate(() => {
    const told: string[] = []
    Object.assign(window, { told })
    for (const type of ['tldr-start', 'tldr-progress', 'tldr-text', 'tldr-done', 'tldr-error'])
      document.addEventListener(type, () => told.at(-1) === type || told.push(type))
  })
  await button(page).click()
  await expect(page.getByRole('button', { name: 'Stop' })).toBeVisible()
  await expect(note(page)).toHaveText(/^\d+ tokens, [\d.]+ tokens\/s$/, SLOW)
  await expect(summary(page)).toHaveText(STORY)
  const told = await page.evaluate(() => (window as unknown as { told: string[] }).told)
  expect(told).toEqual(['tldr-start', 'tldr-progress', 'tldr-text', 'tldr-done'])
})

test('works without a network after the first visit, page and model', async ({ page, context }) => {
  await page.goto('/tldr/')
  await expect(page.locator('#offline-state')).toContainText('opens and sums up offline', SLOW)

  await context.setOffline(true)
  await page.reload()
  await expect(page.getByRole('heading', { name: 'The silver bell' })).toBeVisible()
  await button(page).click()
  await expect(summary(page)).toHaveText(STORY, SLOW)

  // The other pages are kept with it.
  await page.getByRole('link', { name: 'ternlight' }).click()
  await page.getByRole('link', { name: /Chat/ }).click()
  await expect(page.locator('#model-name')).toHaveText(/tiny-stories/, SLOW)
})

test('sums up what the reader pastes', async ({ page }) => {
  await page.goto('/tldr/')
  await sumUpOwn(page, '   ')
  await expect(error(page)).toContainText('no text')
  await sumUpOwn(page, OWN_TEXT)
  await expect(note(page)).toHaveText(/tokens\/s$/, SLOW)
  await expect(summary(page)).toHaveText(OWN)
  await expect(error(page)).toBeHidden()
})

test('a text too long for the model is told with both numbers, and a shorter one works', async ({ page }) => {
  await page.goto('/tldr/')
  await sumUpOwn(page, OWN_TEXT.repeat(20))
  await expect(error(page).locator('code')).toHaveText('context-full', SLOW)
  await expect(error(page)).toContainText(/\b1\d{3}\b.*1024/)
  await expect(error(page)).toContainText('too long')
  await sumUpOwn(page, OWN_TEXT)
  await expectBeginningOf(page, OWN)
})

test('stops, while loading and while writing', async ({ page, context }) => {
  let release = () => {}
  const held = new Promise<void>(resolve => (release = resolve))
  await context.route('**/tiny-stories.gguf', async route => {
    await held
    await route.continue()
  })
  await page.goto('/tldr/')
  await button(page).click()
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect(note(page)).toHaveText('Stopped.')
  release()

  await button(page).click()
  await expect(summary(page)).not.toBeEmpty(SLOW)
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect(note(page)).toHaveText('Stopped.', SLOW)
  const left = await summary(page).textContent()
  expect(STORY.startsWith(left!)).toBe(true)
  expect(left).not.toBe(STORY)

  await button(page).click()
  await expectBeginningOf(page, STORY)
})

test('shows errors inside the widget, and works once they are mended', async ({ page }) => {
  await page.goto('/tldr/')
  const set = (name: string, value: string) =>
    page.locator('tldr-widget').evaluate((widget, [n, v]) => widget.setAttribute(n!, v!), [name, value])
  await set('for', '#nowhere')
  await button(page).click()
  await expect(error(page)).toContainText('No element of this page is “#nowhere”.')

  await set('for', 'story')
  await set('model', '../models/none.gguf')
  await button(page).click()
  await expect(error(page)).toContainText('404', SLOW)
  await expect(error(page).locator('code')).toHaveText('http')

  await set('model', '../models/tiny-stories.gguf')
  await button(page).click()
  await expectBeginningOf(page, STORY)
  await expect(error(page)).toBeHidden()
})
