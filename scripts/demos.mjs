// Builds the demos of www/ into dist/, a static site, with Vite as any app does.
import { inRoot } from './paths.mjs'
import { nodeTool, run } from './process.mjs'
import { heading, seconds } from './report.mjs'

/** `docs`: the documentation is made too, so that the pages may link to it. */
export const buildDemos = ({ docs = false } = {}) => {
  const start = performance.now()
  run(nodeTool('vite'), ['build', '--logLevel', 'warn', '--config', inRoot('vite.config.ts')], {
    env: { WITH_DOCS: docs ? 'yes' : '' }
  })
  heading(`  ${'Demos to dist/'.padEnd(24)}(${seconds(performance.now() - start)})`)
}
