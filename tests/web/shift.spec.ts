// The pages while they load: nothing that is on a page is pushed away, and each keeps the site for the next visit.
import { expect, SLOW, test } from './demos.ts'

/** Each page, and what it shows when it has loaded all. */
const PAGES: [path: string, selector: string, text: RegExp][] = [
  ['', '#answer', /^$/],
  ['ai-chat/', 'form button', /Send/],
  ['built-in-ai/', '#state', /model/],
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
const DELAY = 100

/** The greatest sum of shifts of a page, where 1 is all of the screen. The box with the progress of a load grows upwards. */
const MOST = 0.04

declare global {
  interface Window {
    shifts: { value: number, moved: string[] }[]
    /** The service worker that the page has asked for. */
    kept: string | undefined
  }
}

for (const width of [390, 1280]) {
  // Over ten seconds: all pages of the site.
  test(`no page shifts while it loads, and each is kept, ${width} pixels wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 800 })
    await page.route(/\/assets\/[^/]*\.js$/, async route => {
      await new Promise(resolve => setTimeout(resolve, DELAY))
      await route.continue()
    })
    await page.addInitScript(() => {
      // A service worker would bring the scripts at once.
      const serviceWorker = { register: async (address: string) => { window.kept = String(address) }, ready: Promise.resolve() }
      Object.defineProperty(navigator, 'serviceWorker', { value: serviceWorker })
      window.shifts = []
      const named = (node: Node | null) => (node instanceof Element ? `${node.localName}#${node.id}` : String(node?.textContent))
      new PerformanceObserver(list => {
        for (const entry of list.getEntries()) {
          const { value, sources } = entry as unknown as { value: number, sources: { node: Node | null }[] }
          window.shifts.push({ value, moved: sources.map(({ node }) => named(node)) })
        }
      }).observe({ type: 'layout-shift', buffered: true })
    })
    for (const [path, selector, text] of PAGES) {
      await page.goto(`/${path}`)
      await expect(page.locator(selector).first()).toHaveText(text, SLOW)
      await expect.poll(() => page.evaluate(() => window.kept), SLOW).toBe(path ? '../sw.js' : './sw.js')
      await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))))
      const shifts = await page.evaluate(() => window.shifts)
      const sum = shifts.reduce((sum, { value }) => sum + value, 0)
      expect(sum, `/${path}: ${JSON.stringify(shifts)}`).toBeLessThan(MOST)
    }
  })
}
