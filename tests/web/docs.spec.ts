// The documentation as a site, as `npm run docs` makes it. Only in a run of everything, which makes it.
import { expect, expectAccessible, test } from './demos.ts'

test('the documentation is found, searched, leads to the demos, and opens offline once seen', { tag: '@all' }, async ({ page, context }) => {
  await page.goto('/')
  await page.evaluate(() => navigator.serviceWorker.ready)
  await page.getByRole('link', { name: 'Guide', exact: true }).click()
  await expect(page).toHaveURL(/\/docs\/documents\/GUIDE\.html$/)
  // The service worker keeps what is seen from its second page on.
  await page.reload()
  // TypeDoc's list of pages beside it has links in what opens its parts.
  await expectAccessible(page, '[role=main]')

  await page.keyboard.press('/')
  await page.getByRole('combobox').fill('resume')
  await expect(page.getByRole('option', { name: /Loading/ }).first()).toBeVisible()
  await page.keyboard.press('Escape')

  await context.setOffline(true)
  await page.reload()
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await context.setOffline(false)
  await page.getByRole('link', { name: 'Live examples' }).first().click()
  await expect(page).toHaveURL(/\/examples\/$/)

  const outline = await (await page.request.get('/llms.txt')).text()
  const targets = Array.from(outline.matchAll(/\]\(([^)]+)\)/g), ([, target]) => target!)
  expect(targets.length).toBeGreaterThan(15)
  for (const target of targets) expect((await page.request.get(`/${target}`)).status(), target).toBe(200)
})
