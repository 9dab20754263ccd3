// The chat made with React and the AI SDK, driven as a person would.
import type { Page } from '@playwright/test'
import { expect, expectAccessible, NARROW, SLOW, test as base, watchErrors, WHO, WIDE } from './demos.ts'

const field = (page: Page) => page.getByLabel('Your message')
const answers = (page: Page) => page.getByRole('log').locator('.assistant')
const sendButton = (page: Page) => page.getByRole('button', { name: 'Send' })

async function ask(page: Page, text: string) {
  await field(page).fill(text)
  await field(page).press('Enter')
}

/** `demo` is a page that has loaded the model. The tests share it, one after the other. */
const test = base.extend<{ demo: Page }, { visit: { page: Page, check: () => void } }>({
  visit: [
    async ({ browser }, use, { project }) => {
      const page = await browser.newPage({ baseURL: project.use.baseURL })
      const check = watchErrors(page)
      await page.goto('/ai-chat/')
      await expect(sendButton(page)).toBeVisible(SLOW)
      await use({ page, check })
      await page.close()
    },
    { scope: 'worker' }
  ],
  demo: async ({ visit: { page, check } }, use) => {
    await use(page)
    check()
  }
})

test('answers as the words come, and again after that', { tag: '@quick' }, async ({ demo: page }) => {
  await page.evaluate(() => {
    const seen: string[] = []
    Object.assign(window, { seen })
    const log = document.querySelector('[role=log]')!
    new MutationObserver(() => seen.push(`${log.ariaBusy} ${log.textContent}`)).observe(log, { childList: true, subtree: true, characterData: true })
  })
  await page.setViewportSize(NARROW)
  await ask(page, 'Who are you?')
  await expect(answers(page)).toHaveText([WHO], SLOW)
  await expect(sendButton(page)).toBeVisible()
  await page.setViewportSize(WIDE)
  await ask(page, 'Tell me a story.')
  await expect(answers(page)).toHaveCount(2, SLOW)
  await expect(sendButton(page)).toBeVisible(SLOW)
  await expect(answers(page).nth(1)).not.toBeEmpty()
  // The words of a short answer may come at once.
  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen)
  expect(new Set(seen).size).toBeGreaterThan(6)
  // Screen readers read an answer once, when it is whole.
  expect(seen.filter(text => text.startsWith('true')).length).toBeGreaterThan(3)
  await expect(page.getByRole('log')).toHaveAttribute('aria-busy', 'false')
})

test('an answer that is stopped ends, and the next one comes', async ({ demo: page }) => {
  const before = await answers(page).count()
  await page.evaluate(before => {
    const log = document.querySelector('[role=log]')!
    new MutationObserver((_, observer) => {
      if (!log.querySelectorAll('.assistant')[before]?.textContent) return
      observer.disconnect()
      Array.from(document.querySelectorAll('button')).find(({ textContent }) => textContent === 'Stop')!.click()
    }).observe(log, { childList: true, subtree: true, characterData: true })
  }, before)
  await ask(page, 'Tell me a long story about a lighthouse.')
  await expect(answers(page).nth(before)).not.toBeEmpty(SLOW)
  await expect(sendButton(page)).toBeVisible()
  const said = await answers(page).nth(before).innerText()
  // The whole story has some 600 letters.
  expect(said.length).toBeLessThan(200)
  await ask(page, 'Who are you?')
  await expect(answers(page)).toHaveCount(before + 2, SLOW)
  await expect(sendButton(page)).toBeVisible(SLOW)
  await expect(answers(page).nth(before)).toHaveText(said)
})

test('a failure says what is wrong, and can be tried again; a conversation that is too long begins anew', async ({ demo: page }) => {
  await ask(page, 'the moon '.repeat(3000))
  const alert = page.getByRole('alert')
  await expect(alert).toContainText('No answer', SLOW)
  await expect(alert).toContainText(/tokens/)
  await alert.evaluate(element => element.setAttribute('data-before', ''))
  await alert.getByRole('button', { name: 'Try again' }).click()
  await expect(page.locator('[data-before]')).toHaveCount(0)
  await expect(alert).toContainText('No answer', SLOW)
  await page.getByRole('button', { name: 'Start again' }).click()
  await expect(alert).toHaveCount(0)
  await ask(page, 'Who are you?')
  await expect(answers(page)).toHaveText([WHO], SLOW)
  await expect(sendButton(page)).toBeVisible()
})

test('can be used without seeing or a mouse, on narrow and wide screens, light and dark', async ({ demo: page }) => {
  await expectAccessible(page)
})

test('a model that cannot be loaded says why, and is loaded again', async ({ page }) => {
  await page.route('**/models/*.gguf', route => route.fulfill({ status: 404 }))
  await page.goto('/ai-chat/')
  const alert = page.getByRole('alert')
  await expect(alert).toContainText('The model could not be loaded', SLOW)
  await expect(alert).toContainText('404')
  await page.unroute('**/models/*.gguf')
  await alert.getByRole('button', { name: 'Try again' }).click()
  await expect(sendButton(page)).toBeVisible(SLOW)
})
