// Runs Lighthouse, which needs a newer Node than the project, over the pages of dist/.
import { existsSync, readdirSync } from 'node:fs'
import { inRoot } from '../paths.mjs'
import { npm, outputOf, runQuietly } from '../process.mjs'
import { Stop } from '../report.mjs'
import { findBrowser } from '../setup/browser.mjs'
import { findNewerNode } from '../setup/node.mjs'

const HOME = inRoot('tests', 'lighthouse')

/** Pages of the documentation, one of each kind. */
const DOCUMENTATION = ['docs/documents/GUIDE.html', 'docs/classes/index.BitNet.html']

/** The pages of the built site: the landing page, the demos, and some of the documentation if it is there. */
const pages = () => {
  const demos = readdirSync(inRoot('dist')).filter(name => name !== 'docs' && existsSync(inRoot('dist', name, 'index.html')))
  const documents = DOCUMENTATION.filter(path => existsSync(inRoot('dist', path)))
  return ['/', ...demos.map(name => `/${name}/`), ...documents.map(path => `/${path}`)]
}

/** The scores of each page: `{ path, CATEGORY: { score, failed } }`, from 0 to 100, with the audits that failed. */
export const audit = async categories => {
  const node = findNewerNode()
  if (!node) throw new Stop('Lighthouse needs a newer Node: run `node scripts/setup.mjs --tests`.')
  if (!existsSync(inRoot('dist', 'index.html'))) throw new Stop('There are no pages yet: run `npm run docs`.')
  if (!existsSync(inRoot('tests', 'lighthouse', 'node_modules', 'lighthouse'))) {
    const [command, ...args] = npm()
    await runQuietly(command, [...args, 'ci', '--no-audit', '--no-fund'], { cwd: HOME, log: 'lighthouse-npm' })
  }
  // Not at the top: `npm test` reads this file before it has installed Vite.
  const { preview } = await import('vite')
  const server = await preview({ configFile: inRoot('vite.config.ts'), logLevel: 'warn', preview: { port: 0, strictPort: false } })
  try {
    const origin = `http://localhost:${server.httpServer.address().port}`
    const script = inRoot('tests', 'lighthouse', 'lighthouse.mjs')
    const printed = await outputOf(node, [script, origin, categories.join(','), ...pages()], { env: { CHROMIUM: findBrowser() } })
    return printed.trim().split('\n').map(line => JSON.parse(line))
  } finally {
    await server.close()
  }
}

/** A line for each score, those below `least` with what failed. */
export const scoreLines = (pages, least) =>
  pages.flatMap(({ path, ...scores }) =>
    Object.entries(scores).map(([category, { score, failed }]) => {
      const why = score < least && failed.length > 0 ? `: ${failed.join(', ')}` : ''
      return `${path.padEnd(28)} ${category.padEnd(16)} ${String(score).padStart(3)}${why}`
    })
  )

/** Throws if a score is below `least`. */
export const expectScores = (pages, least) => {
  const poor = pages.filter(({ path, ...scores }) => Object.values(scores).some(({ score }) => score < least))
  if (poor.length > 0) throw new Stop(`Lighthouse gives less than ${least}:\n${scoreLines(poor, least).join('\n')}`)
}
