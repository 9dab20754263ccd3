// Builds the demos of www/ into dist/, a static site, with Vite as any app does.
import { inRoot } from './paths.mjs'
import { nodeTool, run } from './process.mjs'
import { heading, seconds } from './report.mjs'

export const buildDemos = () => {
  const start = performance.now()
  run(nodeTool('vite'), ['build', '--logLevel', 'warn', '--config', inRoot('vite.config.ts')])
  heading(`  ${'Demos to dist/'.padEnd(24)}(${seconds(performance.now() - start)})`)
}
