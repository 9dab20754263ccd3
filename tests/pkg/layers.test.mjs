// Modules of JavaScript and TypeScript depend on one another in one direction only. An import of types
// counts, and so does a later `import()`: a reader has to know the other module all the same.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { test } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'

const COMMENTS = /\/\*[^]*?\*\/|^\s*\/\/.*$/gm
const IMPORT = /(?:\bfrom|^import|\bimport\()\s*['"](\.{1,2}\/[^'"]+)['"]/gm

/** The modules of a folder, with the names of those that each imports. */
const modulesIn = folder => {
  const names = readdirSync(folder, { recursive: true })
    .map(name => name.replaceAll('\\', '/'))
    .filter(name => /(?<!\.d)\.(?:ts|mjs)$/.test(name))
  const importsOf = name => {
    const code = readFileSync(join(folder, name), 'utf8').replace(COMMENTS, '')
    return Array.from(code.matchAll(IMPORT), ([, path]) => {
      const plain = posix.join(posix.dirname(name), path).replace(/\.(?:js|mjs|ts)$/, '')
      return names.find(other => other.replace(/\.(?:mjs|ts)$/, '') === plain)
    }).filter(other => other !== undefined)
  }
  return new Map(names.map(name => [name, importsOf(name)]))
}

/** The same of folders. A module at the top is by itself. */
const foldersOf = modules => {
  const folderOf = name => name.includes('/') ? posix.dirname(name) : name
  const folders = new Map([...modules.keys()].map(name => [folderOf(name), []]))
  for (const [name, imports] of modules) {
    const others = imports.map(folderOf).filter(other => other !== folderOf(name))
    folders.get(folderOf(name)).push(...others)
  }
  return folders
}

/** The first circle that is found, as names in a row; `undefined` if there is none. */
const circleIn = graph => {
  const done = new Set()
  const visit = (name, path) => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name]
    if (done.has(name)) return undefined
    for (const next of graph.get(name) ?? []) {
      const circle = visit(next, [...path, name])
      if (circle) return circle
    }
    done.add(name)
    return undefined
  }
  for (const name of graph.keys()) {
    const circle = visit(name, [])
    if (circle) return circle.join(' → ')
  }
  return undefined
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
    assert.equal(circleIn(modulesIn(folder)), undefined)
    write('d.ts', text)
    assert.equal(circleIn(modulesIn(folder)), 'a.ts → in/b.ts → in/side/c.ts → d.ts → a.ts')
  }
})

for (const [folder, least] of [['pkg-template', 100], ['scripts', 40], ['www', 20], ['tests/web', 20]]) {
  test(`no module of ${folder}/ depends on itself through others`, () => {
    const modules = modulesIn(inRoot(folder))
    const imports = [...modules.values()].flat().length
    assert.ok(imports >= least, `${imports} imports were found`)
    assert.equal(circleIn(modules), undefined)
  })
}

test('nor does a folder of pkg-template/', () => {
  assert.equal(circleIn(foldersOf(modulesIn(inRoot('pkg-template')))), undefined)
})

// In WebKit a worker's first script runs once more when a module imports from it, and bundlers make others import what
// they share with it.
test('the script of the worker shares nothing, and nothing imports from it', () => {
  const modules = modulesIn(inRoot('pkg-template'))
  assert.deepEqual([...modules].filter(([, imports]) => imports.includes('protocol/worker.ts')), [])
  const code = readFileSync(inRoot('pkg-template', 'protocol', 'worker.ts'), 'utf8')
  const atOnce = [...code.matchAll(/^import (?!type\b).*$/gm)].map(String)
  assert.deepEqual(atOnce, [])
  assert.match(code, /\bimport\('\.\/answer\.js'\)/)
})
