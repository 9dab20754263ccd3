// The example page with `LanguageModel`, driven as a person would. The model is the bundled one.
import type { Page } from '@playwright/test'
import { expect, expectAccessible, NARROW, SLOW, test, WIDE } from './demos.ts'

const field = (page: Page) => page.getByLabel('Your message')
const answer = (page: Page) => page.getByLabel('Answer')
const askButton = (page: Page) => page.getByRole('button', { name: 'Ask' })
const state = (page: Page) => page.locator('#state')

test('a visitor is asked, sees the load, stops it, asks, stops, and asks again', async ({ page }) => {
  const questions: string[] = []
  let may = false
  page.on('dialog', dialog => {
    questions.push(dialog.message())
    return may ? dialog.accept() : dialog.dismiss()
  })
  await page.setViewportSize(NARROW)
  await page.goto('/built-in-ai/')
  await expect(state(page)).toHaveText('The first question downloads the model.')
  // The server does not say how long the model is, and then it does not send it.
  await page.route('**/models/*.gguf', route => route.request().method() === 'HEAD' ? route.fulfill({ status: 404 }) : undefined)
  await field(page).press('Enter')
  await expect(state(page)).toHaveText(/NotAllowedError.* Ask again, and agree to the download\.$/)
  expect(questions).toEqual(['May the model be downloaded?'])
  may = true
  await askButton(page).click()
  await expect(state(page)).toHaveText('The model is being loaded.')
  await expect.poll(() => questions.length).toBe(2)
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect(state(page)).toHaveText('Stopped.')
  await page.unroute('**/models/*.gguf')
  await page.evaluate(() => new MutationObserver((_, observer) => {
    observer.disconnect()
    Object.assign(window, { wasBusy: document.getElementById('answer')!.ariaBusy })
    document.getElementById('stop')!.click()
  }).observe(document.getElementById('answer')!, { childList: true, characterData: true, subtree: true }))
  await askButton(page).click()
  await expect(answer(page)).not.toBeEmpty(SLOW)
  await expect(state(page)).toHaveText('Stopped.')
  // Screen readers read an answer once, when it is whole.
  expect(await page.evaluate(() => (window as unknown as { wasBusy: string }).wasBusy)).toBe('true')
  await expect(answer(page)).toHaveAttribute('aria-busy', 'false')
  expect(questions.at(-1)).toMatch(/^May the model be downloaded\? \d+ MB would come\.$/)
  await page.setViewportSize(WIDE)
  await field(page).fill('Who are you?')
  await field(page).press('Enter')
  await expect(state(page)).toHaveText(/^\d+ of \d+ tokens/, SLOW)
  await expect(answer(page)).not.toBeEmpty()
  expect(questions.length).toBe(3)
  // The model has 10 MB. A page that closes before it is stored loses the rest.
  await expect.poll(() => page.evaluate(async () => (await navigator.storage.estimate()).usage), SLOW).toBeGreaterThan(10e6)
  await page.reload()
  await expect(state(page)).toHaveText('The model is here.')
  await expectAccessible(page)
})
