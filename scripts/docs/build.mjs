// Makes the pages of the documentation in dist/.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot, readText } from '../paths.mjs'
import { npm, run, runQuietly } from '../process.mjs'
import { heading, seconds } from '../report.mjs'
import { documents } from './documents.mjs'
import { fullText, outline } from './llms.mjs'
import { SITE } from './site.mjs'

const HERE = inRoot('scripts', 'docs')
const TYPEDOC = join(HERE, 'node_modules', 'typedoc', 'bin', 'typedoc')

/** The types of the package's entries; some entries have none to show. */
const entryPoints = () => {
  const { exports } = JSON.parse(readText('pkg/package.json'))
  return Object.values(exports)
    .filter(target => target.default?.endsWith('.js'))
    .map(({ types }) => inRoot('pkg', types))
    .filter(path => statSync(path).size > 'export {};\n'.length)
}

/** Adds docs/ and both texts to dist/. */
export const buildDocs = async () => {
  const start = performance.now()
  if (!existsSync(TYPEDOC)) {
    const [command, ...args] = npm()
    await runQuietly(command, [...args, 'ci', '--prefix', HERE], { cwd: HERE, log: 'docs-npm' })
  }
  const options = {
    name: 'tritloom',
    entryPoints: entryPoints(),
    projectDocuments: documents().map(path => inRoot(path)),
    readme: inRoot('README.md'),
    tsconfig: join(HERE, 'tsconfig.json'),
    out: inRoot('dist', 'docs'),
    disableSources: true,
    hideGenerator: true,
    // The guide is searched too, not only the interface.
    searchInDocuments: true,
    plugin: [join(HERE, 'site.mjs')],
    customCss: join(HERE, 'site.css'),
    favicon: inRoot('www', 'icon.svg'),
    navigationLinks: { 'Live examples': `${SITE}examples/`, Demos: SITE },
    // A link that leads nowhere ends the build.
    treatWarningsAsErrors: true
  }
  const settings = inRoot('target', 'typedoc.json')
  writeFileSync(settings, JSON.stringify(options))
  run(process.execPath, [TYPEDOC, '--options', settings, '--logLevel', 'Warn'])

  const texts = documents().map(path => ({ path, text: readText(path) }))
  const types = ['types', 'model-types'].map(name => readFileSync(inRoot('pkg', `${name}.d.ts`), 'utf8')).join('\n')
  writeFileSync(inRoot('dist', 'llms.txt'), outline(readText('README.md'), texts))
  writeFileSync(inRoot('dist', 'llms-full.txt'), fullText(readText('README.md'), texts, types))
  heading(`  ${'Documentation to dist/'.padEnd(24)}(${seconds(performance.now() - start)})`)
}
