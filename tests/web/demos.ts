// What the demos' tests share.
import { test as base, expect } from '@playwright/test'

export { expect }

/** Every test of a demo also fails when something is thrown in the page that nobody catches. */
export const test = base.extend<{ nothingUncaught: void }>({
  nothingUncaught: [
    async ({ page }, use) => {
      const thrown: string[] = []
      page.on('pageerror', error => thrown.push(String(error)))
      await use()
      expect(thrown, 'uncaught errors in the page').toEqual([])
    },
    { auto: true }
  ]
})

/** For what waits for the model: a software adapter on a busy machine. */
export const SLOW = { timeout: 120_000 }
