// The contents of pkg/ after a build, as it would be published.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sizes } from '../../scripts/build/size.mjs'
import { CARGO_HOME, cargoField, inRoot, readText } from '../../scripts/paths.mjs'

const PKG = fileURLToPath(new URL('../../pkg', import.meta.url))

test('no file of the package names a folder of the machine that built it', () => {
  const names = readdirSync(PKG, { recursive: true }).filter(name => /\.(js|map|ts|wasm|json|md)$/.test(name))
  assert.ok(names.includes('tritloom_bg.wasm'))
  const folders = [homedir(), resolve(inRoot()), CARGO_HOME].filter(folder => folder.length > 1)
  for (const name of names) {
    const bytes = readFileSync(join(PKG, name))
    for (const folder of folders)
      assert.equal(bytes.indexOf(folder), -1, `${name} contains ${folder}`)
  }
})

test('the README gives the sizes of this build, within three hundredths', () => {
  const said =
    /(?<scripts>\d+) kB of JavaScript and (?<wasm>\d+) kB of WebAssembly for a GPU, or (?<cpu>\d+) kB for the CPU, gzipped; (?<grammar>\d+) kB more/
      .exec(readText('README.md').replaceAll('\n', ' '))
  assert.ok(said, 'README.md gives no sizes')
  for (const [name, found] of Object.entries(sizes(PKG)))
    assert.ok(Math.abs(said.groups[name] / found - 1) <= 0.03, `README.md says ${said.groups[name]} kB of ${name}; the build has ${found}`)
})

test('crate, package and changelog have one version', async () => {
  const version = cargoField('version')
  assert.equal(JSON.parse(readFileSync(join(PKG, 'package.json'), 'utf8')).version, version)
  assert.equal((await import('../../pkg/index.js')).BitNet.version, version)
  // The first entry's number; before the entries come the numbers of the conventions it follows.
  const [, entries] = readText('CHANGELOG.md').split(/\n## \[(.*)/s)
  assert.equal(/\b\d+\.\d+\.\d+\b/.exec(entries)?.[0], version)
  const lock = readText('Cargo.lock')
  assert.match(lock, new RegExp(`name = "tritloom"\nversion = "${version}"`))
})

test('every type that others refer to is exported, and so in the documentation', () => {
  const declaration = /^export (?:interface|type) (\w+)/gm
  const entries = { 'index.d.ts': ['types.d.ts', 'model-types.d.ts', 'openai/types.d.ts', 'openai/responses-types.d.ts'], 'ai-sdk.d.ts': ['ai-sdk/types.d.ts'] }
  for (const [entry, files] of Object.entries(entries)) {
    const exported = new Set(readFileSync(join(PKG, entry), 'utf8').match(/\w+/g))
    for (const file of files) {
      const declared = readFileSync(join(PKG, file), 'utf8').matchAll(declaration)
      const names = Array.from(declared, ([, name]) => name)
      assert.ok(names.length > 5, file)
      assert.deepEqual(names.filter(name => !exported.has(name)), [], `${file}: not in ${entry}`)
    }
  }
})

test('a page without the AI SDK fetches nothing of it', () => {
  const names = readdirSync(PKG, { recursive: true }).filter(name => name.endsWith('.js') && !/(^|\/)ai-sdk/.test(name))
  assert.ok(names.length > 50)
  for (const name of names) assert.doesNotMatch(readFileSync(join(PKG, name), 'utf8'), /['"][./]*ai-sdk/, name)
})
