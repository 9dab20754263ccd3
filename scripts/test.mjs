// `npm test`: sets up and runs every check; the first that fails ends it.
//
//   npm test -- native    the crate alone; also: scripts, web
import { checks } from './checks.mjs'
import { heading, main, Stop, summary } from './report.mjs'
import { setUp } from './setup/steps.mjs'
import { tally, total } from './tally.mjs'

const chosen = () => {
  const parts = process.argv.slice(2)
  const known = [...new Set(checks.map(check => check.part))]
  const unknown = parts.filter(part => !known.includes(part))
  if (unknown.length > 0) throw new Stop(`No part is called ${unknown.join(', ')}. Usage: npm test -- [${known.join('] [')}]`)
  return parts.length > 0 ? checks.filter(check => parts.includes(check.part)) : checks
}

/** Runs one check; its row for the summary. A note is what it has to say beside having passed. */
const perform = async ({ name, step }) => {
  const start = performance.now()
  let printed = ''
  const row = { name, outcome: 'passed' }
  try {
    row.note = await step(text => (printed += text))
  } catch (error) {
    row.outcome = 'FAILED'
    row.error = error
  }
  row.tests = tally(printed)
  const { passed, failed } = row.tests
  if (passed + failed > 0) row.note = failed > 0 ? `${passed} passed, ${failed} failed` : `${passed} tests`
  return { ...row, ms: performance.now() - start }
}

/** In the words of `cargo test`, which readers of test output know. */
const closing = (rows, ms) => {
  const { passed, failed, skipped } = total(rows.map(row => row.tests))
  const verdict = rows.at(-1).error ? 'FAILED' : 'ok'
  return `\ntest result: ${verdict}. ${passed} passed; ${failed} failed; ${skipped} ignored; finished in ${(ms / 1000).toFixed(2)}s`
}

await main(async () => {
  const start = performance.now()
  const rows = []
  for (const check of [{ name: 'Setup', step: () => setUp({ tests: true }) }, ...chosen()]) {
    if (rows.length > 0) heading(`\n=== ${check.name}`)
    rows.push(await perform(check))
    if (rows.at(-1).error) break
  }
  summary('Summary', rows)
  heading(closing(rows, performance.now() - start))

  const { name, error } = rows.at(-1)
  if (error) throw error instanceof Stop ? new Stop(`${name} failed: ${error.message}`) : error
})
