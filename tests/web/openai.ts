// The npm package `openai` for pages, bundled as an app would bundle it.
import { resolve } from 'node:path'
import type OpenAI from 'openai'
import { build } from 'vite'
import type { Page } from '@playwright/test'

declare global {
  interface Window {
    openai: { default: typeof OpenAI }
  }
}

let bundled: Promise<string> | undefined

const bundle = async () => {
  const lib = { entry: resolve('node_modules/openai/index.mjs'), formats: ['iife' as const], name: 'openai' }
  const built = await build({ configFile: false, logLevel: 'error', build: { write: false, minify: false, target: 'es2022', lib } })
  const [output] = [built].flat()
  if (!output || !('output' in output)) throw new Error('Vite has bundled nothing')
  return output.output[0].code
}

/** Puts the package into a page, as `window.openai`. */
export const giveOpenAI = async (page: Page) => {
  if (await page.evaluate(() => 'openai' in window)) return
  bundled ??= bundle()
  await page.addScriptTag({ content: await bundled })
}
