// `npm run lighthouse`: Lighthouse's performance of the pages in dist/, on a slow phone as it emulates one. A figure to
// read, not a test: it depends on the machine.
import { audit, scoreLines } from './lighthouse/audit.mjs'
import { heading, main } from './report.mjs'

await main(async () => {
  for (const line of scoreLines(await audit(['performance']), 90)) heading(line)
})
