// `npm test`: sets up and runs every check; the first that fails ends it.
//
//   npm test -- native    the crate alone; also: scripts, web
import { checks } from './checks.mjs'
import { heading, main, seconds, Stop, summary } from './report.mjs'
import { setUp } from './setup/steps.mjs'

const wanted = () => {
  const parts = process.argv.slice(2)
  const known = [...new Set(checks.map(check => check.part))]
  const unknown = parts.filter(part => !known.includes(part))
  if (unknown.length > 0) throw new Stop(`No part is called ${unknown.join(', ')}. Usage: npm test -- [${known.join('] [')}]`)
  return parts.length > 0 ? checks.filter(check => parts.includes(check.part)) : checks
}

const done = []

const timed = (name, step) => {
  const start = performance.now()
  const end = outcome => done.push({ name, outcome, ms: performance.now() - start })
  try {
    end(step() ?? 'passed')
  } catch (error) {
    end('FAILED')
    throw error
  }
}

await main(() => {
  const start = performance.now()
  const chosen = wanted()
  try {
    timed('Setup', () => setUp({ tests: true }))
    for (const { name, step } of chosen) {
      heading(`\n=== ${name}`)
      timed(name, step)
    }
  } catch (error) {
    const ended = done.at(-1)
    summary('Checks until the failure', done)
    throw new Stop(`${ended.name} failed: ${error.message}`)
  }
  summary('Checks', done)
  heading(`\n${done.length} checks passed in ${seconds(performance.now() - start)}.`)
})
