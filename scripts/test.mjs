// `npm test`: sets up and runs the checks; the first that fails ends the run.
//
//   npm test                  every check, without the tests that take long (@all)
//   npm test -- quick         the checks that take seconds, for use while writing
//   npm run test:all          every check and every test
//   npm test -- native        the crate alone; also: scripts, web; also after `quick` or `all`
//   npm run test:all -- soak  random calls for half an hour; SOAK_MINUTES and SOAK_SEED change that
//
// The checks are in two lanes, which run at the same time, each in a process of its own: a lane
// alone keeps little more than one core busy. The output of the second lane follows that of the
// first. At the end it prints the time of each step and the ten slowest tests;
// target/test-times.txt has the time of every test.
import { heading, main, Stop } from './report.mjs'
import { setUp } from './setup/steps.mjs'
import { checks, LANES } from './test/checks.mjs'
import { laneOf, performLane, runLanes } from './test/lanes.mjs'
import { total } from './test/tally.mjs'
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

/** In the words of `cargo test`, which readers of test output know. */
const closing = (rows, ms) => {
  const { passed, failed, skipped } = total(rows.map(row => row.tests))
  const verdict = rows.some(row => row.error) ? 'FAILED' : 'ok'
  const counts = `${passed} passed; ${failed} failed; ${skipped} ignored`
  return `\ntest result: ${verdict}. ${counts}; finished in ${(ms / 1000).toFixed(2)}s`
}

await main(async () => {
  const lane = laneOf(process.argv)
  if (lane) process.argv.splice(2, 2)
  const { mode, chosenChecks } = chosen()
  if (lane) return performLane(lane, chosenChecks, mode)

  const start = performance.now()
  const rows = await runLanes(
    () => setUp({ tests: true }),
    LANES.filter(name => chosenChecks.some(check => check.lane === name)),
    process.argv.slice(2)
  )
  reportTimes(rows)
  heading(closing(rows, performance.now() - start))
  const failed = rows.find(row => row.error)
  if (failed) throw new Stop(`${failed.name} failed: ${failed.error}`)
})
