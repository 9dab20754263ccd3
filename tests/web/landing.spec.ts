// The landing page, used as a person would.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { expect, expectAccessible, NARROW, SLOW, test, WIDE } from './demos.ts'

const run = (page: Page) => page.getByRole('button', { name: 'Run it on this device' })
const stop = (page: Page) => page.getByRole('button', { name: 'Stop' })
const answer = (page: Page) => page.getByRole('log', { name: 'The answer' })
const speed = (page: Page) => page.locator('#speed')

// Over ten seconds: two pages load the model.
test('one click brings an answer with its speed, and another visit needs no network', { tag: '@quick' }, async ({ page, context }) => {
  const asked: string[] = []
  page.on('request', request => asked.push(request.url()))
  await page.setViewportSize(NARROW)
  await page.goto('/')
  await expectAccessible(page)
  expect(asked.filter(url => url.endsWith('.gguf'))).toEqual([])

  await page.getByLabel('Your prompt').press('Enter')
  await expect(answer(page)).toContainText('Once upon a time', SLOW)
  await expect(speed(page)).toHaveText(/^[\d.]+ tokens\/s on your (processor|GPU.*), the first after [\d.]+ s\. The model has 10\.3 MB\.$/, SLOW)
  await expectAccessible(page)

  // The next answer needs no load. It is stopped by the keyboard, which stays where it was.
  const before = asked.length
  await run(page).focus()
  await page.keyboard.press('Enter')
  await expect(stop(page)).toBeFocused()
  await expect(speed(page)).toHaveText('')
  await page.keyboard.press('Enter')
  await expect(run(page)).toBeFocused()
  await expect(page.locator('#step')).toHaveText('Stopped.')
  expect(asked.length).toBe(before)

  await page.evaluate(() => navigator.serviceWorker.ready)
  await page.setViewportSize(WIDE)
  await context.setOffline(true)
  await page.reload()
  await run(page).click()
  await expect(answer(page)).toContainText('Once upon a time', SLOW)
})

test('a model that cannot be had is said, and the next click tries again', async ({ page, context }) => {
  await context.route('**/tiny-stories.gguf', route => route.fulfill({ status: 404 }))
  await page.goto('/')
  await run(page).click()
  await expect(page.getByRole('alert')).toContainText('(http)', SLOW)
  await context.unroute('**/tiny-stories.gguf')
  await run(page).click()
  await expect(page.getByRole('alert')).toBeHidden()
  await expect(answer(page)).toContainText('Once', SLOW)
})

test('the fetching of the program is stopped too', async ({ browser, baseURL }) => {
  // A service worker would have the program already.
  const page = await browser.newPage({ baseURL: baseURL!, serviceWorkers: 'block' })
  await page.goto('/')
  let release = () => {}
  const held = new Promise<void>(resolve => { release = resolve })
  await page.route('**/assets/*.js', async route => {
    await held
    await route.continue()
  })
  await run(page).click()
  await expect(page.locator('#step')).toHaveText('Fetching the program …')
  await stop(page).click()
  await expect(page.locator('#step')).toHaveText('Stopped.')
  release()
  await run(page).click()
  await expect(answer(page)).toContainText('Once', SLOW)
  await page.close()
})

test('a model whose worker has ended is loaded anew by the next click', async ({ page }) => {
  await page.addInitScript(() => {
    window.Worker = class extends Worker {
      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options)
        Object.assign(window, { workers: [...(window as unknown as { workers?: Worker[] }).workers ?? [], this] })
      }
    }
  })
  await page.goto('/')
  await run(page).click()
  await expect(page.locator('#speed')).toContainText('tokens/s', SLOW)
  await page.evaluate(() => {
    for (const worker of (window as unknown as { workers: Worker[] }).workers) worker.terminate()
  })
  await run(page).click()
  await expect(page.getByRole('alert')).toContainText('(internal)', SLOW)
  await run(page).click()
  await expect(answer(page)).toContainText('Once', SLOW)
  await expect(page.getByRole('alert')).toBeHidden()
})

test('the figures are those of the raw results, all links lead somewhere, and the lines are copied', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.goto('/')
  const raw = readFileSync('docs/results/h200-peer.json', 'utf8')
  const table = page.getByRole('region', { name: 'Comparison' })
  const cells = await table.getByRole('row').evaluateAll(rows =>
    rows.slice(1).map(row => [...row.children].map(cell => cell.textContent)))
  const { rows } = JSON.parse(raw) as { rows: { what: string, unit: string, ours: { median: number }, peer: { median: number } }[] }
  expect(cells.map(([what]) => what)).toEqual(rows.map(({ what }) => what))
  for (const [n, { unit, ours, peer }] of rows.entries()) {
    const [, here, there, gain] = cells[n]!
    for (const [text, { median }] of [[here, ours], [there, peer]] as const) {
      expect(text!.endsWith(` ${unit}`)).toBe(true)
      expect(Math.abs(parseFloat(text!) / median - 1)).toBeLessThan(0.005)
    }
    const better = unit === 'tok/s' ? ours.median / peer.median : peer.median / ours.median
    expect(gain).toBe(`${better.toFixed(1)} ×`)
  }

  const links = await page.getByRole('link').evaluateAll(links => links.map(link => (link as HTMLAnchorElement).href))
  expect(links.length).toBeGreaterThan(15)
  for (const link of new Set(links)) expect((await page.request.get(link)).status(), link).toBe(200)
  const results = await page.getByRole('link', { name: 'the raw results' }).getAttribute('href')
  expect(await (await page.request.get(`/${results}`)).text()).toBe(raw)

  await page.getByRole('button', { name: 'Copy' }).click()
  await expect(page.getByRole('button', { name: 'Copied' })).toBeVisible()
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).split('\n')
  expect(lines.length).toBe(3)
  expect(lines[0]).toBe("import { BitNet } from 'tritloom'")
})
