// Files of TypeScript do not import one another in a circle. tests/layers.rs says the same of Rust.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'

const COMMENTS = /\/\*[^]*?\*\/|^\s*\/\/.*$/gm

/** Imports of values and of types, exports from other files, and imports while the program runs. */
const IMPORTS = /\bfrom\s+'(\.[^']+)'|\bimport\s*\(?\s*'(\.[^']+)'/g

/** For each TypeScript file in a folder and its folders, the files there that it imports. */
const importsIn = folder => {
  const names = readdirSync(folder, { recursive: true }).filter(name => /(?<!\.d)\.ts$/.test(name))
  return new Map(names.map(name => {
    const text = readFileSync(join(folder, name), 'utf8').replace(COMMENTS, '')
    const paths = [...text.matchAll(IMPORTS)].map(([, from, own]) => join(folder, dirname(name), from ?? own))
    const files = paths.map(path => (existsSync(`${path}.ts`) ? `${path}.ts` : path.replace(/\.js$/, '.ts')))
    return [name, files.map(file => relative(folder, file)).filter(file => names.includes(file))]
  }))
}

/** A circle of imports, such as `a.ts -> b.ts -> a.ts`, or undefined. */
const circleIn = imports => {
  const done = new Set()
  const search = way => {
    const file = way.at(-1)
    if (way.indexOf(file) < way.length - 1) return way.slice(way.indexOf(file)).join(' -> ')
    if (done.has(file)) return undefined
    for (const next of imports.get(file)) {
      const found = search([...way, next])
      if (found) return found
    }
    done.add(file)
    return undefined
  }
  for (const file of imports.keys()) {
    const found = search([file])
    if (found) return found
  }
  return undefined
}

for (const folder of ['pkg-template', 'www', 'tests/web']) {
  test(`no files of ${folder} import one another in a circle`, () => {
    const imports = importsIn(inRoot(folder))
    assert.ok([...imports.values()].flat().length > 3, 'imports are found')
    assert.equal(circleIn(imports), undefined)
  })
}

test('circles of every kind of import are found, at any depth', t => {
  const folder = mkdtempSync(join(tmpdir(), 'tritloom-circles-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'in/side'), { recursive: true })
  const write = (name, text) => writeFileSync(join(folder, name), text)
  write('a.ts', "// A comment.\nimport {\n  b,\n  c\n} from './in/b.js'\n// import './a.js'")
  write('in/b.ts', "import type { C } from './side/c.js'\nimport fs from 'node:fs'")
  write('in/side/c.ts', "export * from '../../d.js'")
  for (const text of ["const a = () => import('./a.js')", "export type A = import('./a.js').A", "import './a'"]) {
    write('d.ts', '')
    assert.equal(circleIn(importsIn(folder)), undefined)
    write('d.ts', text)
    assert.equal(circleIn(importsIn(folder)), 'a.ts -> in/b.ts -> in/side/c.ts -> d.ts -> a.ts')
  }
})
