// Lighthouse over pages of the built site: `lighthouse.mjs ORIGIN CATEGORIES PATH…`, with the browser that `CHROMIUM` names.
// Prints a line of JSON for each page: its address, and its score from 0 to 100 for each category, with what failed.
import { launch } from 'chrome-launcher'
import lighthouse from 'lighthouse'

/** Milliseconds after which a page that still loads is judged as it is. Some load a model, which takes long on a busy machine. */
const MAX_WAIT = 20_000

const [origin, categories, ...paths] = process.argv.slice(2)
const chrome = await launch({
  chromePath: process.env.CHROMIUM,
  chromeFlags: ['--headless=new', '--no-sandbox', '--disable-gpu']
})
try {
  for (const path of paths) {
    const { lhr } = await lighthouse(`${origin}${path}`, {
      port: chrome.port,
      onlyCategories: categories.split(','),
      logLevel: 'error',
      // The report alone is read.
      disableFullPageScreenshot: true,
      maxWaitForLoad: MAX_WAIT
    })
    if (lhr.runtimeError) throw new Error(lhr.runtimeError.message)
    const scores = Object.values(lhr.categories).map(({ id, score, auditRefs }) => {
      const failed = auditRefs
        .filter(({ weight, id }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 0.9)
        .map(({ id }) => id)
      return [id, { score: Math.round(100 * score), failed }]
    })
    console.log(JSON.stringify({ path, ...Object.fromEntries(scores) }))
  }
} finally {
  chrome.kill()
}
