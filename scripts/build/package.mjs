// What npm gets beside the compiled code: package.json with the crate's version, and the texts.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cargoField, inRoot } from '../paths.mjs'
import { nodeTool, run } from '../process.mjs'
import { Stop } from '../report.mjs'

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
  const first = "import { trustedHtml } from './trusted.js';\n"
  writeFileSync(join(pkg, 'readability.js'), `${first}${trusting}export { Readability };\n`)
  const types = readFileSync(join(from, 'index.d.ts'), 'utf8')
  writeFileSync(join(pkg, 'readability.d.ts'), types.slice(types.indexOf('export class Readability')))
}

/** pkg-template/*.ts to JavaScript and types; the types of all else must be in `pkg` already. */
export const compileTypeScript = pkg => {
  run(nodeTool('tsc'), ['--project', join(TEMPLATE, 'tsconfig.json'), '--outDir', pkg])
}

export const writeTexts = pkg => {
  const template = JSON.parse(readFileSync(join(TEMPLATE, 'package.json'), 'utf8'))
  const described = { ...template, version: cargoField('version') }
  writeFileSync(join(pkg, 'package.json'), `${JSON.stringify(described, null, 2)}\n`)

  copyFileSync(join(TEMPLATE, 'README.md'), join(pkg, 'README.md'))
  const texts = readdirSync(inRoot()).filter(name => /^LICENSE-|^CHANGELOG\.md$/.test(name))
  for (const name of texts) copyFileSync(inRoot(name), join(pkg, name))
}
