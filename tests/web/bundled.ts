// Packages of npm for pages, bundled as an app would bundle them.
import { resolve } from 'node:path'
import { build } from 'vite'
import type { Page } from '@playwright/test'

const bundled = new Map<string, Promise<string>>()

const bundle = async (name: string, entry: string) => {
  const lib = { entry: resolve(entry), formats: ['iife' as const], name }
  const define = { 'process.env.NODE_ENV': '"production"' }
  const built = await build({ configFile: false, logLevel: 'error', define, build: { write: false, minify: false, target: 'es2022', lib } })
  const [output] = [built].flat()
  if (!output || !('output' in output)) throw new Error('Vite has bundled nothing')
  return output.output[0].code
}

/** Puts what `entry` exports into a page, as `window[name]`. */
export const giveBundle = async (page: Page, name: string, entry: string) => {
  if (await page.evaluate(name => name in window, name)) return
  const code = bundled.get(name) ?? bundle(name, entry)
  bundled.set(name, code)
  await page.addScriptTag({ content: await code })
}
