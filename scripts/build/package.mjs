// What npm gets beside the compiled code: package.json with the crate's version, and the texts.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cargoField, inRoot } from '../paths.mjs'
import { nodeTool, run } from '../process.mjs'

const TEMPLATE = inRoot('pkg-template')

/** pkg-template/*.ts to JavaScript and types; wasm-pack's types must be in `pkg` already. */
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
