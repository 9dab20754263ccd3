// The page that makes a widget: what it writes is what the widget beside it does.
import type { Page } from '@playwright/test'
import { expect, expectAccessible, NARROW, SLOW, test, WIDE } from './demos.ts'

const lines = (page: Page) => page.locator('#lines')
const preview = (page: Page) => page.locator('#preview')

test('two lines, of what was asked for alone, and a widget that does it', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.setViewportSize(NARROW)
  await page.goto('/widget/')
  await expect(lines(page)).toHaveText(
    '<script type="module" src="tritloom/widget.js"></script>\n<tldr-widget></tldr-widget>')
  await expectAccessible(page)

  await page.getByLabel('Address of a model').fill('https://example.com/a.gguf?a=1&b="2"')
  await page.getByLabel('Text: an id').fill('#story')
  await page.getByLabel('Type').selectOption('Key points')
  await page.getByLabel('Language of the labels').selectOption('Deutsch')
  await expect(preview(page).getByRole('button', { name: 'Zusammenfassen', exact: true })).toBeVisible()
  await page.getByLabel('Label of the button').fill('Kurz & <gut>')
  await expect(preview(page).getByRole('button', { name: 'Kurz & <gut>' })).toBeVisible()
  await page.getByLabel('A colour of your own').check()
  await page.getByLabel('Colour', { exact: true }).fill('#ffee00')
  await page.getByLabel('Load the model when the page is idle').check()
  const written = '<script type="module" src="tritloom/widget.js"></script>\n' +
    '<tldr-widget for="#story" model="https://example.com/a.gguf?a=1&amp;b=&quot;2&quot;" type="key-points" lang="de" ' +
    'style="--tldr-accent: #ffee00; --tldr-on-accent: #000000" preload><span slot="sum-up">Kurz &amp; &lt;gut></span></tldr-widget>'
  await expect(lines(page)).toHaveText(written)
  await page.getByRole('button', { name: 'Copy the lines' }).click()
  await expect(page.getByRole('button', { name: 'Copied' })).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(written)
  await expectAccessible(page)

  // The browser reads of the lines what the page was told.
  const read = await page.evaluate(text => {
    const found = new DOMParser().parseFromString(text, 'text/html').querySelector('tldr-widget')!
    return [found.getAttribute('model'), found.textContent]
  }, written)
  expect(read).toEqual(['https://example.com/a.gguf?a=1&b="2"', 'Kurz & <gut>'])

  // A hash that is none is said here, not only at each reader's. Without an address, the script has its usual one.
  const hash = page.getByLabel('Its hash')
  const fault = page.locator('#integrity-fault')
  await hash.fill('sha256-abc')
  await expect(fault).toContainText('This is no hash')
  await expect(hash).toHaveAttribute('aria-invalid', 'true')
  await hash.fill(` sha256-${'a'.repeat(43)}= `)
  await expect(fault).toHaveText('')
  await expect(lines(page)).toContainText(` integrity="sha256-${'a'.repeat(43)}="`)
  await page.getByLabel('Address of widget.js').fill('  ')
  await expect(lines(page)).toContainText('src="tritloom/widget.js"')

  await page.setViewportSize(WIDE)
  // The preview has the wishes, but the page's own model and text.
  await preview(page).getByRole('button', { name: 'Kurz & <gut>' }).click()
  await expect(preview(page).locator('#note')).toHaveText(/^\d+ Tokens, .*tokens\/s/, SLOW)
  await expect(preview(page).getByRole('listitem').first()).toBeVisible()
})
