// The demos of www/ to dist/, a static site, built by Vite as any app's.
import { existsSync, readdirSync } from 'node:fs'
import { inRoot } from './paths.mjs'
import { nodeTool, run } from './process.mjs'
import { heading, seconds } from './report.mjs'

export const buildDemos = () => {
  const start = performance.now()
  run(nodeTool('vite'), ['build', '--logLevel', 'warn', '--config', inRoot('vite.config.ts')])
  heading(`  ${'Demos to dist/'.padEnd(24)}(${seconds(performance.now() - start)})`)
}

/** What Vite leaves out: it strips types and does not check them. */
export const checkDemos = () => {
  const projects = ['www', ...readdirSync(inRoot('www')).map(name => `www/${name}`)]
    .map(folder => inRoot(folder, 'tsconfig.json'))
    .filter(existsSync)
  for (const project of projects) run(nodeTool('tsc'), ['--project', project, '--noEmit'])
}
