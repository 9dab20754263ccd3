// The pages while they load: nothing that is on the page is pushed away.
import { expect, SLOW, test } from './demos.ts'

/** Each page, and what it shows when it has loaded all. */
const PAGES: [path: string, selector: string, text: RegExp][] = [
  ['', '#answer', /^$/],
  ['ai-chat/', 'form button', /Send/],
  ['built-in-ai/', '#state', /downloads the model/],
  ['chat/', '#model-name', /tiny-stories/],
  ['examples/', '#examples', /Run/],
  ['form/', '#model-name', /tiny-stories/],
  ['lab/', '#model-name', /tiny-stories/],
  ['search/', '#model-name', /tiny-stories/],
  ['tldr/', '#offline-state', /opens and sums up offline/],
  ['tools/', '#model-name', /tiny-stories/],
  ['widget/', '#lines', /tldr-widget/]
]

/** Milliseconds for which scripts are held, so that the browser draws a page before its script runs, as over a network. */
const DELAY = 200

/** The greatest sum of shifts: that of a line that grows by a word. */
const MOST = 0.005

declare global {
  interface Window {
    shifts: { value: number, moved: string[] }[]
  }
}

for (const width of [390, 1280]) {
  // Over ten seconds: all pages of the site, each as on a first visit.
  test(`no page shifts while it loads, ${width} pixels wide`, async ({ browser, baseURL }) => {
    const found: object[] = []
    for (const [path, selector, text] of PAGES) {
      const context = await browser.newContext({ ...(baseURL && { baseURL }), viewport: { width, height: 800 } })
      await context.route(/\/assets\/[^/]*\.js$/, async route => {
        await new Promise(resolve => setTimeout(resolve, DELAY))
        await route.continue()
      })
      await context.addInitScript(() => {
        window.shifts = []
        const named = (node: Node | null) => (node instanceof Element ? `${node.localName}#${node.id}.${node.className}` : String(node?.textContent).slice(0, 40))
        new PerformanceObserver(list => {
          for (const entry of list.getEntries()) {
            const { value, sources } = entry as unknown as { value: number, sources: { node: Node | null }[] }
            window.shifts.push({ value, moved: sources.map(({ node }) => named(node)) })
          }
        }).observe({ type: 'layout-shift', buffered: true })
      })
      const page = await context.newPage()
      await page.goto(`/${path}`)
      await expect(page.locator(selector).first()).toHaveText(text, SLOW)
      const offline = page.locator('#offline-state')
      if (await offline.count() > 0) await expect(offline).toContainText('offline', SLOW)
      await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))))
      const shifts = await page.evaluate(() => window.shifts)
      const sum = shifts.reduce((sum, { value }) => sum + value, 0)
      if (sum > MOST) found.push({ path, sum, shifts })
      await context.close()
    }
    expect(found).toEqual([])
  })
}
