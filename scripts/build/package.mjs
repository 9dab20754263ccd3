// Makes the other files of the npm package: package.json with the crate's version, and the texts.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cargoField, inRoot } from '../paths.mjs'
import { nodeTool, run } from '../process.mjs'
import { Stop } from '../report.mjs'
import { JSDOC } from './standalone.mjs'

const TEMPLATE = inRoot('pkg-template')

/** Where Readability writes HTML, into a copy of the page. */
const WRITES = /(?<=\.innerHTML = )(.*)(?=;$)/gm

/**
 * Mozilla's Readability as a module of its own, which the widget fetches where it needs it. It is
 * published as a script for Node and pages, and does not know Trusted Types.
 */
export const copyReadability = pkg => {
  const from = inRoot('node_modules', '@mozilla', 'readability')
  const script = readFileSync(join(from, 'Readability.js'), 'utf8')
  const end = script.indexOf('if (typeof module === "object")')
  if (end < 0) throw new Stop('Readability.js does not end as expected.')
  const trusting = script.slice(0, end).replace(WRITES, 'trustedHtml($1)')
  const first = "import { trustedHtml } from '../trusted.js';\n"
  mkdirSync(join(pkg, 'widget'), { recursive: true })
  writeFileSync(join(pkg, 'widget', 'readability.js'), `${first}${trusting}export { Readability };\n`)
  const types = readFileSync(join(from, 'index.d.ts'), 'utf8')
  writeFileSync(join(pkg, 'widget', 'readability.d.ts'), types.slice(types.indexOf('export class Readability')))
}

/** The TypeScript of pkg-template/ to JavaScript and types; all else must be in `pkg` already. */
export const compileTypeScript = pkg => {
  // Scripts for browsers are checked without the types of Node. The second project has all.
  run(nodeTool('tsc'), ['--project', join(TEMPLATE, 'tsconfig.json'), '--noEmit'])
  const options = ['--project', join(TEMPLATE, 'node', 'tsconfig.json'), '--outDir', pkg]
  // Comments are more than half of the scripts' bytes. The types keep them, and so do the source maps.
  run(nodeTool('tsc'), [...options, '--emitDeclarationOnly'])
  run(nodeTool('tsc'), [...options, '--declaration', 'false', '--removeComments'])
  edit(join(pkg, 'tritloom.js'), JSDOC, '')
  const imports = [
    ['cpu', 'modules', 'href'],
    ['cpu', 'compute-worker', 'script'],
    ['node', 'gpu', 'name'],
    ['node', 'thread-script', 'script']
  ]
  for (const [folder, script, path] of imports) {
    edit(join(pkg, folder, `${script}.js`), `import(${path})`, `import(${NOT_FOLLOWED} ${path})`)
  }
  if (!hasThreads(pkg)) writeFileSync(join(pkg, 'cpu', 'threaded.js'), 'export const THREADED = {};\n')
}

/** Whether a package has the modules with threads. */
export const hasThreads = pkg => existsSync(join(pkg, 'cpu', 'tritloom-simd-threads.wasm'))

/** Bundlers leave an import with these comments as it is. The compiler of TypeScript removes all comments. */
const NOT_FOLLOWED = '/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */'

const edit = (path, before, after) => {
  const text = readFileSync(path, 'utf8')
  const edited = text.replace(before, after)
  if (edited === text) throw new Stop(`${path} has no ${before}.`)
  writeFileSync(path, edited)
}

/** The fields of Cargo.toml that say where the project lives and whose it is. */
export const address = () => ({
  repository: cargoField('repository'),
  homepage: cargoField('homepage'),
  authors: cargoField('authors')
})

/** The hosts whose CI npm accepts for provenance. */
const HOSTS = ['github.com', 'gitlab.com']

/** Why the package cannot be published; empty if it can. `threads` says whether it has the modules with threads. */
export const obstacles = ({ repository, authors }, threads) => {
  const host = URL.canParse(repository) ? new URL(repository) : null
  const supported = host?.protocol === 'https:' && HOSTS.includes(host.hostname)
  return [
    repository === '' && 'Cargo.toml has no `repository`',
    repository !== '' &&
      !supported &&
      `\`repository\` in Cargo.toml is not an https address on ${HOSTS.join(' or ')}, whose CI npm needs for provenance`,
    authors.length === 0 && 'Cargo.toml has no `authors`',
    !threads && 'the modules with threads are not there'
  ].filter(Boolean)
}

/** The package's package.json. While something is missing, it refuses to be published and says why. */
export const described = (template, version, { repository, homepage, authors }, threads) => {
  const missing = obstacles({ repository, authors }, threads)
  const [author, ...contributors] = authors
  const places = repository !== '' && {
    homepage: homepage || `${repository}#readme`,
    repository: { type: 'git', url: `git+${repository}.git` },
    bugs: { url: `${repository}/issues` }
  }
  return {
    ...template,
    version,
    ...(author && { author }),
    ...(contributors.length > 0 && { contributors }),
    ...places,
    ...(missing.length > 0 && { scripts: { prepublishOnly: refusal(missing) } })
  }
}

/** A command that prints why, and fails. In double quotes, every system's shell leaves it as it is. */
const refusal = missing => {
  const why = `Not published: ${missing.join('; ')}.`.replaceAll('`', '')
  return `node -e "console.error('${why}'); process.exit(1)"`
}

/** `[text](../path)`, a link to a file of the project. */
const LINK = /\[([^\]]+)\]\(\.\.\/([^)]+)\)/g

/**
 * The package's README with links to files of the project, which it does not have. While the project
 * has no address, they are named.
 */
export const linked = (readme, version, { repository }) =>
  readme.replace(LINK, (_, text, path) =>
    repository === '' ? `${text} (\`${path}\`)` : `[${text}](${repository}/blob/v${version}/${path})`
  )

export const writeTexts = pkg => {
  const template = JSON.parse(readFileSync(join(TEMPLATE, 'package.json'), 'utf8'))
  const version = cargoField('version')
  const manifest = described(template, version, address(), hasThreads(pkg))
  writeFileSync(join(pkg, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)

  const readme = readFileSync(join(TEMPLATE, 'README.md'), 'utf8')
  writeFileSync(join(pkg, 'README.md'), linked(readme, version, address()))
  const texts = readdirSync(inRoot()).filter(name => /^LICENSE-|^CHANGELOG\.md$/.test(name))
  for (const name of texts) copyFileSync(inRoot(name), join(pkg, name))
}
