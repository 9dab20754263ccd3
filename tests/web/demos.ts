// The parts that the demos' tests share.
import { readFileSync } from 'node:fs'
import { test as base, expect } from '@playwright/test'
import type { BrowserContext, Page } from '@playwright/test'

export { expect }

/** For what waits for the model: on a busy machine a software adapter may take this long. */
export const SLOW = { timeout: 120_000 }

/** The screens on which each page is used. */
export const NARROW = { width: 390, height: 844 }
export const WIDE = { width: 1280, height: 800 }

/** The bundled model's greedy answer to `Who are you?`. */
export const WHO = 'I am a tiny story model. I can tell short stories and sum them up.'

/** Its greedy summary of the story of the TL;DR demo. */
export const STORY =
  'Daisy lost her silver bell at the river, and Ben helped her find it next to an old log.'

/** Gives a function that fails if the page threw something uncaught since it was called last. */
export const watchErrors = (page: Page) => {
  const thrown: string[] = []
  page.on('pageerror', error => thrown.push(String(error)))
  return () => expect(thrown.splice(0), 'uncaught errors in the page').toEqual([])
}

/** Each test with a page of its own also fails if something is thrown in it uncaught. */
export const test = base.extend({
  page: async ({ page }, use) => {
    const check = watchErrors(page)
    await use(page)
    check()
  }
})

/**
 * Lets a test take the GPU away from the model in the worker of the pages of this context. `before` is a script that
 * the worker runs first.
 */
export const makeLosable = (context: BrowserContext, before = '') =>
  context.route(/\/assets\/worker-[^/]*\.js$/, async route => {
    const response = await route.fetch()
    await route.fulfill({ response, body: `${LOST_DEVICES}\n${before}\n${await response.text()}` })
  })

const LOST_DEVICES = readFileSync('tests/web/lost-devices.mjs', 'utf8')

/** Takes the GPU away, as a browser may when its driver is reset. */
export const loseGpu = (page: Page) =>
  page.evaluate(() => new BroadcastChannel('gpu').postMessage('lose'))

/**
 * Fails if axe finds a fault within the elements of a selector, in light and dark and on a narrow and a wide screen,
 * or if the page can be scrolled sideways.
 */
export async function expectAccessible(page: Page, within = 'html') {
  const size = page.viewportSize()!
  await page.evaluate(AXE)
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 900 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      const found = await page.evaluate(async within => {
        const { violations } = await (window as unknown as Axe).axe.run(within)
        const { scrollWidth, clientWidth } = document.documentElement
        return [
          ...violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`)),
          ...(scrollWidth > clientWidth ? [`${scrollWidth - clientWidth} pixels too wide`] : [])
        ]
      }, within)
      expect(found, `${colorScheme}, ${width} pixels`).toEqual([])
    }
  }
  await page.setViewportSize(size)
}

interface Axe {
  axe: { run(within: string): Promise<{ violations: { id: string, nodes: { html: string }[] }[] }> }
}

const AXE = readFileSync('node_modules/axe-core/axe.min.js', 'utf8')
