// The live examples: each recipe of the documentation is there, and runs.
import { readFileSync } from 'node:fs'
import { expect, expectAccessible, NARROW, SLOW, test, WIDE } from './demos.ts'

// Over ten seconds: a model loads, and seven recipes run.
test('each recipe of the document runs, by the keyboard, and is stopped', async ({ page }) => {
  const text = readFileSync('docs/RECIPES.md', 'utf8')
  const titles = Array.from(text.matchAll(/^## (.+)$/gm), ([, title]) => title!)
  expect(titles.length).toBeGreaterThan(5)
  await page.setViewportSize(NARROW)
  await page.goto('/examples/')
  await expect(page.getByRole('heading', { level: 2 })).toHaveText(titles)
  await expectAccessible(page)
  // A model that cannot be had is said, and the next run tries again.
  const last = page.getByRole('region', { name: titles.at(-1)! })
  await page.route('**/*.gguf', route => route.abort())
  await last.getByRole('button', { name: /^Run/ }).press('Enter')
  await expect(last.locator('.failed')).toContainText('(network). Check the address and the connection.', SLOW)
  await page.unroute('**/*.gguf')
  for (const title of titles) {
    const section = page.getByRole('region', { name: title })
    const code = (await section.locator('code').last().textContent())!
    expect(text).toContain(code)
    await section.getByRole('button', { name: `Run: ${title}` }).press('Enter')
    await expect(section.getByRole('button', { name: `Run: ${title}` })).toBeVisible(SLOW)
    // A line for each call of `show`.
    await expect(section.getByRole('log').locator('p')).toHaveCount(code.split('show(').length - 1)
    await expect(section.locator('.failed')).toHaveCount(0)
  }
  await expect(page.getByRole('region', { name: titles[2]! }).getByRole('log')).toHaveText(/^\{"animal":"(cat|dog|fox)","legs":[0-8]\}$/)
  await expectAccessible(page)

  await page.setViewportSize(WIDE)
  const first = page.getByRole('region', { name: titles[0]! })
  await first.getByRole('button', { name: /^Run/ }).press('Enter')
  await expect(first.getByRole('button', { name: /^Stop/ })).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(first.getByRole('button', { name: /^Run/ })).toBeFocused()
  await expect(first.locator('.failed')).toHaveCount(0)
})
