// `npm run screenshot`: takes README.md's picture of the chat, from the pages in dist/. Look at it before you commit it.
import { existsSync } from 'node:fs'
import { inRoot } from './paths.mjs'
import { heading, main, Stop } from './report.mjs'
import { findBrowser } from './setup/browser.mjs'

const PICTURE = inRoot('www', 'chat', 'screenshot.png')
const QUESTION = 'Tell me a story about a brave cat'

/** Milliseconds for the load and for the answer, each. */
const PATIENCE = 120_000

await main(async () => {
  if (!existsSync(inRoot('dist', 'index.html'))) throw new Stop('There are no pages yet: run `npm start` or `npm run docs`.')
  const [{ preview }, { chromium }] = await Promise.all([import('vite'), import('@playwright/test')])
  const server = await preview({ configFile: inRoot('vite.config.ts'), logLevel: 'warn', preview: { port: 0, strictPort: false } })
  const browser = await chromium.launch({ executablePath: findBrowser() ?? undefined, args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage({ viewport: { width: 1200, height: 760 }, colorScheme: 'light' })
    page.setDefaultTimeout(PATIENCE)
    await page.goto(`http://localhost:${server.httpServer.address().port}/chat/`)
    await page.getByRole('button', { name: 'New chat' }).and(page.locator(':enabled')).waitFor()
    // On a machine without a GPU there is a note.
    for (const close of await page.locator('#notices .closable button').all()) await close.click()
    // The same story each time.
    await page.getByLabel('Preset').selectOption('Precise')
    await page.getByLabel('Your message').fill(QUESTION)
    await page.keyboard.press('Enter')
    await page.getByRole('log').locator('.figures').waitFor()
    await page.screenshot({ path: PICTURE })
  } finally {
    await browser.close()
    await server.close()
  }
  heading(`  ${PICTURE}`)
})
