// The npm package `ai` in pages, with zod, and this package's entry for it.
import type { Page } from '@playwright/test'
import type * as aiSdk from '../../pkg/ai-sdk.js'
import type * as ai from './ai.mjs'
import { giveBundle } from './bundled'

declare global {
  interface Window {
    ai: typeof ai
    aiSdk: typeof aiSdk
  }
}

/** Puts the packages into a page, as `window.ai` and `window.aiSdk`. */
export const giveAi = async (page: Page) => {
  await giveBundle(page, 'ai', 'tests/web/ai.mjs')
  await page.evaluate(async () => {
    window.aiSdk ??= await import(`${location.origin}/pkg/ai-sdk.js`)
    Object.assign(window, { AI_SDK_LOG_WARNINGS: false })
  })
}
