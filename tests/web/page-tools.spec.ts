// The demo whose tools change the page, driven as a person would. The model is the bundled one, whose
// calls are valid and make no sense.
//
// Tests take over ten seconds where the software adapter computes a prompt with tools: some 400 tokens.
import type { Page } from '@playwright/test'
import { expect, expectAccessible, loseGpu, makeLosable, NARROW, SLOW, test as base, watchErrors, WIDE } from './demos.ts'

const field = (page: Page) => page.getByLabel('Your request')
const choice = (page: Page) => page.getByLabel('Tools to call')
const askButton = (page: Page) => page.getByRole('button', { name: 'Ask' })
const stopButton = (page: Page) => page.getByRole('button', { name: 'Stop' })
const known = (page: Page, name: string) => page.getByRole('group', { name: 'Tools that the model knows' }).getByLabel(name)
const undo = (page: Page) => page.getByRole('button', { name: 'Undo' })
const last = (page: Page) => page.locator('#last')
/** The latest request with all that came of it. */
const turn = (page: Page) => page.getByRole('log').locator('.turn').first()
const calls = (page: Page) => turn(page).locator('.call')
const items = (page: Page) => page.getByRole('region', { name: 'Shopping list' }).getByRole('listitem')

async function ready(page: Page) {
  await expect(page.locator('#model-name')).toHaveText(/tiny-stories/, SLOW)
}

/** Asks, and stops the request once a tool has been called. Gives the arguments of the call. */
async function call(page: Page, text: string, tool: string) {
  await choice(page).selectOption(tool)
  await field(page).fill(text)
  await field(page).press('Enter')
  await expect(calls(page).first().locator('.result')).not.toBeEmpty(SLOW)
  await stop(page)
  await expect(calls(page).first().locator('.name')).toHaveText(tool)
  return JSON.parse(await calls(page).first().locator('.arguments').innerText())
}

async function stop(page: Page) {
  await page.keyboard.press('Escape')
  await expect(turn(page).locator('.figures')).toBeVisible(SLOW)
  await expect(stopButton(page)).toBeHidden()
}

/** `demo` is a page that has loaded the model, and on which nothing has changed. The tests share it. */
const test = base.extend<{ demo: Page }, { visit: { page: Page, check: () => void } }>({
  visit: [
    async ({ browser }, use, { project }) => {
      const page = await browser.newPage({ baseURL: project.use.baseURL })
      const check = watchErrors(page)
      await page.goto('/tools/')
      await ready(page)
      // A prompt with few tools is soon computed.
      await known(page, 'set_theme').uncheck()
      await use({ page, check })
      await page.close()
    },
    { scope: 'worker' }
  ],
  demo: async ({ visit: { page, check } }, use) => {
    while (await undo(page).isEnabled()) await undo(page).click()
    await use(page)
    check()
    if (await stopButton(page).isVisible()) await stop(page)
  }
})

test('a call shows its arguments and its result, changes the page, and is undone', { tag: '@quick' }, async ({ demo: page }) => {
  await page.setViewportSize(NARROW)
  await page.getByRole('button', { name: 'How many miles are 42 km?' }).click()
  await expect(field(page)).toHaveValue('How many miles are 42 km?')
  const before = await items(page).allInnerTexts()
  const { name, count } = await call(page, 'Put bread on the list', 'add_item')
  expect(name.length >= 1 && name.length <= 20 && count >= 1 && count <= 99).toBe(true)
  await expect(last(page)).toHaveText(`Put ${count} ${name} on the list.`)
  await expect(calls(page).first().locator('.result')).toContainText('The list has ')
  expect(await items(page).allInnerTexts()).not.toEqual(before)
  await page.setViewportSize(WIDE)
  await undo(page).click()
  await expect(last(page)).toHaveText(`Undone: Put ${count} ${name} on the list.`)
  expect(await items(page).allInnerTexts()).toEqual(before)
})

test('the toy has to call at least one tool; where it may choose, it writes', async ({ demo: page }) => {
  await expect(page.getByText('The bundled model is a toy')).toBeVisible()
  await choice(page).selectOption('required')
  await field(page).fill('What time is it in Tokyo?')
  await askButton(page).click()
  await expect(stopButton(page)).toBeFocused()
  await expect(calls(page).first().locator('.result')).not.toBeEmpty(SLOW)
  // After the call the model goes on with a text.
  await expect(turn(page).locator('.assistant')).toHaveText(/^Model: ./, SLOW)
  await stop(page)
  await expect(field(page)).toBeFocused()

  await choice(page).selectOption('auto')
  await field(page).fill('Who are you?')
  await field(page).press('Enter')
  await expect(turn(page).locator('.assistant')).toHaveText(/^Model: ./, SLOW)
  await stop(page)
  await expect(calls(page)).toHaveCount(0)
})

test('a tool that fails says so to the model and to the reader', async ({ demo: page }) => {
  await known(page, 'add_item').uncheck()
  await expect(askButton(page)).toBeDisabled()
  await known(page, 'tick_item').check()
  await expect(choice(page).locator('option')).toHaveText(['As the model likes', 'At least one', 'tick_item'])
  while (await items(page).count() > 0) await items(page).first().getByRole('button', { name: 'Remove' }).click()
  const { item } = await call(page, 'I have the apples', 'tick_item')
  await expect(calls(page).first().locator('.result.wrong')).toHaveText(`There is no ${item} on the list.`)

  await field(page).fill('Who are you? '.repeat(400))
  await field(page).press('Enter')
  const alert = turn(page).getByRole('alert')
  await expect(alert.locator('code')).toHaveText('context-full', SLOW)
  await expect(alert).toContainText('Ask for less')
  await expect(field(page)).toHaveValue(/^Who are you/)
  await known(page, 'add_item').check()
  await known(page, 'tick_item').uncheck()
})

test('all that the tools do can be done by hand, and undone', async ({ demo: page }) => {
  const start = await items(page).allInnerTexts()
  await page.getByLabel('New item').fill('Milk')
  await page.keyboard.press('Enter')
  await expect(items(page).filter({ hasText: '3 milk' })).toHaveCount(1)
  await page.getByLabel('New item').fill('<b>salt</b>')
  await page.keyboard.press('Enter')
  await expect(items(page).last().getByRole('checkbox')).toHaveAccessibleName('<b>salt</b>')
  const bread = items(page).getByRole('checkbox', { name: 'bread' })
  await bread.press('Space')
  await expect(bread).toBeChecked()
  await expect(bread).toBeFocused()
  await items(page).last().getByRole('button', { name: 'Remove <b>salt</b>' }).click()
  await expect(items(page)).toHaveCount(3)

  const converted = page.locator('#converted')
  await expect(converted).toHaveText('10 km are 6.214 miles.')
  await page.getByLabel('Amount').fill('100')
  await page.getByLabel('From').selectOption('°C')
  await expect(converted).toContainText('cannot be converted')
  await page.getByLabel('To', { exact: true }).selectOption('°F')
  await expect(converted).toHaveText('100 °C are 212 °F.')
  await page.getByLabel('City').selectOption('Tokyo')
  await expect(page.locator('#time')).toHaveText(/^\w{3},? \d\d:\d\d:\d\d$/)
  await page.getByLabel('Dark').check()
  await expect(page.locator('html')).toHaveCSS('color-scheme', 'dark')

  while (await undo(page).isEnabled()) await undo(page).click()
  expect(await items(page).allInnerTexts()).toEqual(start)
  await expect(converted).toHaveText('10 km are 6.214 miles.')
  await expect(page.getByLabel('City')).toHaveValue('London')
  await expect(page.getByLabel('As the system')).toBeChecked()
})

test('can be used without seeing or a mouse, on narrow and wide screens, light and dark', async ({ demo: page }) => {
  await call(page, 'Put bread on the list', 'add_item')
  await expectAccessible(page)
})

// Over ten seconds: two devices compile the kernels and compute the prompt.
test('after a loss of the GPU a request says so, and the next brings the model back', async ({ page }) => {
  await makeLosable(page.context())
  await page.goto('/tools/?backend=webgpu')
  await ready(page)
  await known(page, 'add_item').uncheck()
  await choice(page).selectOption('auto')
  await field(page).fill('Tell me a story.')
  await field(page).press('Enter')
  await expect(turn(page).locator('.assistant')).toHaveText(/^Model: ./, SLOW)
  await loseGpu(page)
  await expect(turn(page).getByRole('alert').locator('code')).toHaveText('device-lost', SLOW)
  await expect(field(page)).toHaveValue('Tell me a story.')
  await field(page).press('Enter')
  await expect(page.locator('#notices')).toContainText('Bringing the model back')
  await expect(turn(page).locator('.assistant')).toHaveText(/^Model: ./, SLOW)
  await expect(page.locator('#notices')).not.toContainText('model back')
})
