// The example page with `LanguageModel`, driven as a person would. The model is the bundled one.
import type { Page } from '@playwright/test'
import { expect, expectAccessible, SLOW, test } from './demos.ts'

const field = (page: Page) => page.getByLabel('Your message')
const answer = (page: Page) => page.getByLabel('Answer')
const state = (page: Page) => page.locator('#state')

test('a visitor is asked, sees the load, asks, stops, and asks again', async ({ page }) => {
  const questions: string[] = []
  let may = false
  page.on('dialog', dialog => {
    questions.push(dialog.message())
    return may ? dialog.accept() : dialog.dismiss()
  })
  await page.goto('/built-in-ai/')
  await expect(state(page)).toHaveText('The first question downloads the model.')
  await field(page).press('Enter')
  await expect(state(page)).toHaveText(/NotAllowedError/)
  expect(questions).toEqual([expect.stringMatching(/^May the model be downloaded\? It has \d+ MB\.$/)])
  may = true
  await page.getByRole('button', { name: 'Ask' }).click()
  await expect(answer(page)).not.toBeEmpty(SLOW)
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect(state(page)).toHaveText('Stopped.')
  await field(page).fill('Who are you?')
  await field(page).press('Enter')
  await expect(state(page)).toHaveText(/^\d+ of \d+ tokens/, SLOW)
  await expect(answer(page)).not.toBeEmpty()
  expect(questions.length).toBe(2)
  await page.reload()
  await expect(state(page)).toHaveText('The model is here.')
  await expectAccessible(page)
})
