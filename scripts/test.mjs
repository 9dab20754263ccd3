// `npm test`: sets up and runs the checks; the first that fails ends the run.
//
//   npm test                  every check, without the tests that take long (@all)
//   npm test -- quick         the checks that take seconds, for use while writing
//   npm run test:all          every check and every test
//   npm test -- native        the crate alone; also: scripts, web; also after `quick` or `all`
//   npm run test:all -- soak  random calls for half an hour; SOAK_MINUTES and SOAK_SEED change that
//
// At the end it prints the time of each step and the ten slowest tests; target/test-times.txt has
// the time of every test.
import { heading, main, Stop } from './report.mjs'
import { setUp } from './setup/steps.mjs'
import { checks } from './test/checks.mjs'
import { tally, total } from './test/tally.mjs'
import { reportTimes, testTimes } from './test/times.mjs'

const MODES = ['quick', 'all']

const chosen = () => {
  const words = process.argv.slice(2)
  const parts = [...new Set(checks.flatMap(({ part }) => part))]
  const unknown = words.filter(word => ![...MODES, ...parts].includes(word))
  const modes = words.filter(word => MODES.includes(word))
  if (unknown.length > 0 || modes.length > 1) {
    const usage = `npm test -- [${MODES.join(' | ')}] [${parts.join('] [')}]`
    throw new Stop(
      unknown.length > 0 ? `Unknown: ${unknown.join(', ')}. Usage: ${usage}` : `Usage: ${usage}`
    )
  }
  const mode = modes[0] ?? 'usual'
  const wanted = words.filter(word => parts.includes(word))
  const isWanted = ({ part }) =>
    wanted.length === 0 || [part].flat().some(word => wanted.includes(word))
  const inRun = check => isWanted(check) && !(check.slow && mode === 'quick')
  return { mode, chosenChecks: checks.filter(inRun) }
}

/** Runs one check; its row for the summary. */
const perform = async ({ name, step }, mode) => {
  const start = performance.now()
  let printed = ''
  const row = { name, outcome: 'passed', times: [] }
  try {
    row.note = await step({ mode, times: row.times, hear: text => (printed += text) })
  } catch (error) {
    row.outcome = 'FAILED'
    row.error = error
  }
  row.times.push(...testTimes(printed))
  row.tests = tally(printed)
  const { passed, failed, skipped } = row.tests
  if (passed + failed > 0) {
    const counts = failed > 0 ? `${passed} passed, ${failed} failed` : `${passed} tests`
    row.note = skipped > 0 ? `${counts}, ${skipped} skipped` : counts
  }
  return { ...row, ms: performance.now() - start }
}

/** In the words of `cargo test`, which readers of test output know. */
const closing = (rows, ms) => {
  const { passed, failed, skipped } = total(rows.map(row => row.tests))
  const verdict = rows.at(-1).error ? 'FAILED' : 'ok'
  const counts = `${passed} passed; ${failed} failed; ${skipped} ignored`
  return `\ntest result: ${verdict}. ${counts}; finished in ${(ms / 1000).toFixed(2)}s`
}

await main(async () => {
  const start = performance.now()
  const { mode, chosenChecks } = chosen()
  const rows = [await perform({ name: 'Setup', step: () => setUp({ tests: true }) }, mode)]
  // What has a `start` works beside the checks before it; its own step then waits for its end.
  const started = rows[0].error
    ? []
    : chosenChecks.map(check => (check.start ? { ...check, step: check.start() } : check))
  for (const check of started) {
    heading(`\n=== ${check.name}`)
    rows.push(await perform(check, mode))
    if (rows.at(-1).error) break
  }
  reportTimes(rows)
  heading(closing(rows, performance.now() - start))

  const { name, error } = rows.at(-1)
  if (error) throw error instanceof Stop ? new Stop(`${name} failed: ${error.message}`) : error
})
