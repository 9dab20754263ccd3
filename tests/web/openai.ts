// The npm package `openai` in pages.
import type OpenAI from 'openai'
import type { Page } from '@playwright/test'
import { giveBundle } from './bundled'

declare global {
  interface Window {
    openai: { default: typeof OpenAI }
  }
}

/** Puts the package into a page, as `window.openai`. */
export const giveOpenAI = (page: Page) => giveBundle(page, 'openai', 'node_modules/openai/index.mjs')
