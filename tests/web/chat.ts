// The tests of the chat demo share this: the parts of the page, and a page that all of them use.
import type { Page } from '@playwright/test'
import { expect, SLOW, test as base, watchErrors } from './demos.ts'

/** The answer to "Good night!": few tokens, for tests that need any answer. */
export const BYE = 'Bye! Sleep well.'

export const answers = (page: Page) => page.getByRole('log').locator('.assistant')
export const figures = (page: Page) => page.getByRole('log').locator('.figures')
export const field = (page: Page) => page.getByLabel('Your message')
export const sendButton = (page: Page) => page.getByRole('button', { name: 'Send' })
export const stopButton = (page: Page) => page.getByRole('button', { name: 'Stop' })
export const loadButton = (page: Page) => page.getByRole('button', { name: 'Load model' })
export const alert = (page: Page) => page.getByRole('alert')

/** The model's name is in the header as soon as the model can be used. */
export async function ready(page: Page, name = /tiny-stories/) {
  await expect(page.locator('#model-name')).toHaveText(name, SLOW)
  await expect(page.locator('#loading')).toBeHidden(SLOW)
}

/** Asks for a short answer that is known. */
export async function expectBye(page: Page) {
  await greedy(page)
  const bye = await ask(page, 'Good night!')
  await bye.done()
  await expect(answers(page).last()).toHaveText(`Model: ${BYE}`)
}

export async function ask(page: Page, text: string) {
  const before = await figures(page).count()
  await field(page).fill(text)
  await field(page).press('Enter')
  return { done: () => expect(figures(page)).toHaveCount(before + 1, SLOW) }
}

export async function greedy(page: Page) {
  await page.getByLabel(/Greedy/).check()
}

/** Records every text of the progress line: it changes faster than a test can look. */
export function recordProgress() {
  const seen: string[] = []
  Object.assign(window, { seen })
  const look = () => {
    const text = document.getElementById('progress-text')?.textContent ?? ''
    if (text !== seen.at(-1)) seen.push(text)
  }
  const all = { subtree: true, childList: true, characterData: true }
  new MutationObserver(look).observe(document, all)
}

/** The texts of the progress line since the last call. */
export const recorded = (page: Page) =>
  page.evaluate(() => (window as unknown as { seen: string[] }).seen.splice(0).join('\n'))

interface Visit {
  page: Page
  check: () => void
  /** The texts of the progress line during the first load. */
  progress: string
}

/**
 * `chat` is a page that has loaded the bundled model by itself, with a new chat and the settings'
 * defaults. The tests share it.
 */
export const test = base.extend<{ chat: Page }, { visit: Visit }>({
  visit: [
    async ({ browser }, use, { project }) => {
      const context = await browser.newContext({ baseURL: project.use.baseURL })
      const page = await context.newPage()
      const check = watchErrors(page)
      await page.addInitScript(recordProgress)
      await page.goto('/chat/')
      await ready(page)
      await use({ page, check, progress: await recorded(page) })
      await context.close()
    },
    { scope: 'worker' }
  ],
  chat: async ({ visit }, use) => {
    const { page, check } = visit
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByRole('button', { name: 'Defaults' }).click()
    await field(page).fill('')
    await use(page)
    check()
  }
})
