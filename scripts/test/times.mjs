// How long each test took, read from what the test runners print.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { inRoot } from '../paths.mjs'
import { heading, plain, seconds, summary } from '../report.mjs'

const FILE = inRoot('target', 'test-times.txt')
const SLOWEST = 10

/** `{ name, ms }` of each test that libtest or node --test printed with its time. */
export const testTimes = printed => {
  const tests = []
  let program = ''
  for (const line of plain(printed).split('\n')) {
    program = /^ {5}Running (.+)$/.exec(line)?.[1] ?? program
    const rust = /^test (.+) \.\.\. \w+ <([\d.]+)s>$/.exec(line)
    if (rust) tests.push({ name: `${program}: ${rust[1]}`, ms: 1000 * Number(rust[2]) })
    const node = /^\s*[✔✖] (.+) \(([\d.]+)ms\)$/.exec(line)
    if (node) tests.push({ name: node[1], ms: Number(node[2]) })
  }
  return tests
}

/** `{ name, ms }` of each test in the file that Playwright's JSON reporter wrote. */
export const playwrightTimes = report => {
  const inSuite = ({ file, specs = [], suites = [] }) => [
    ...specs.flatMap(({ title, tests }) =>
      tests.map(({ results }) => ({
        name: `${file}: ${title}`,
        ms: results.reduce((sum, { duration }) => sum + duration, 0)
      }))
    ),
    ...suites.flatMap(inSuite)
  ]
  return report.suites.flatMap(inSuite)
}

export const readPlaywrightTimes = path => playwrightTimes(JSON.parse(readFileSync(path, 'utf8')))

/** The time of each step and the slowest tests, as text; `file` has every test. */
export const timesReport = rows => {
  const tests = rows
    .flatMap(({ name: step, times }) => times.map(test => ({ ...test, step })))
    .toSorted((a, b) => b.ms - a.ms)
  const lines = tests.map(
    ({ name, step, ms }) => `  ${seconds(ms).padStart(8)}  ${name}  [${step}]`
  )
  const steps = summary('Summary', rows)
  const slowest = [`The ${SLOWEST} slowest tests`, ...lines.slice(0, SLOWEST)].join('\n')
  return {
    printed: tests.length > 0 ? `${steps}\n\n${slowest}` : steps,
    file: `${[steps, '', 'Every test, the slowest first', ...lines].join('\n')}\n`
  }
}

/** Prints the report, and writes it to target/test-times.txt. */
export const reportTimes = rows => {
  const { printed, file } = timesReport(rows)
  heading(`\n${printed}`)
  mkdirSync(dirname(FILE), { recursive: true })
  writeFileSync(FILE, file)
}
