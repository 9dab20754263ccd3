// The lanes of `npm test`: checks that run one after the other, beside those of the other lane.
//
// A lane is a process of its own. It writes its rows for the summary to a file, and ends with an exit
// code that is not 0 where a check failed. The other lane is stopped then.
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { inRoot, ROOT } from '../paths.mjs'
import { heading } from '../report.mjs'
import { tally } from './tally.mjs'
import { testTimes } from './times.mjs'

const OPTION = '--lane'

/** The lane that this process is; undefined if it is the one that starts them. */
export const laneOf = ([, , option, name]) => (option === OPTION ? name : undefined)

const fileOf = lane => inRoot('target', `test-${lane}.json`)

/** Runs one check; its row for the summary. */
const perform = async ({ name, step }, mode) => {
  const start = performance.now()
  let printed = ''
  const row = { name, outcome: 'passed', times: [] }
  try {
    row.note = await step({ mode, times: row.times, hear: text => (printed += text) })
  } catch (error) {
    row.outcome = 'FAILED'
    row.error = error.message
    if (error.constructor === Error) heading(error.stack)
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

/** Runs the checks of a lane up to the first that fails, in the lane's own process. */
export const performLane = async (lane, checks, mode) => {
  const rows = []
  for (const check of checks.filter(check => check.lane === lane)) {
    heading(`\n=== ${check.name}`)
    rows.push(await perform(check, mode))
    write(lane, rows)
    if (rows.at(-1).error) process.exit(1)
  }
}

const write = (lane, rows) => {
  mkdirSync(dirname(fileOf(lane)), { recursive: true })
  writeFileSync(fileOf(lane), JSON.stringify(rows))
}

const read = lane => {
  try {
    return JSON.parse(readFileSync(fileOf(lane), 'utf8'))
  } catch {
    return []
  }
}

/** Sets up, then runs the lanes at the same time with these arguments; the rows of all checks. */
export const runLanes = async (setUp, names, args) => {
  const rows = [await perform({ name: 'Setup', step: setUp }, '')]
  if (rows[0].error) return rows
  const lanes = names.map(name => start(name, args))
  const stopAll = () => lanes.forEach(lane => lane.stop())
  process.once('exit', stopAll)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130))
  // A lane that fails ends the others: what they print afterwards is of no use.
  for (const lane of lanes) lane.end.then(ok => ok || stopAll())
  for (const lane of lanes) await lane.show()
  const ends = await Promise.all(lanes.map(lane => lane.end))
  process.off('exit', stopAll)
  rows.push(...names.flatMap(read))
  if (!ends.every(Boolean) && !rows.some(row => row.error)) {
    const tests = { passed: 0, failed: 0, skipped: 0 }
    const error = 'a lane ended without saying why'
    rows.push({ name: 'Lanes', outcome: 'FAILED', error, times: [], tests, ms: 0 })
  }
  return rows
}

const start = (name, args) => {
  rmSync(fileOf(name), { force: true })
  const child = spawn(process.execPath, [inRoot('scripts', 'test.mjs'), OPTION, name, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, so that its children can be stopped with it.
    detached: true
  })
  const held = []
  let print = text => held.push(text)
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', text => print(text))
  }
  const end = new Promise(resolve => {
    child.on('error', () => resolve(false))
    child.on('close', status => resolve(status === 0))
  })
  return {
    name,
    end,
    stop: () => {
      try {
        process.kill(-child.pid)
      } catch {
        // It has ended.
      }
    },
    /** Prints all that the lane prints, until it ends. */
    show: () => {
      print = text => process.stdout.write(text)
      held.forEach(print)
      return end
    }
  }
}
