// A release is one command away: `npm publish ./pkg`. These tests check what it would send, with
// the checkers of others too. Nothing here reaches a registry.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { address, described as describe, linked, hasThreads, obstacles } from '../../scripts/build/package.mjs'
import { cpuModules } from '../../scripts/build/wasm.mjs'
import { inRoot, readText } from '../../scripts/paths.mjs'
import { nodeTool, npm } from '../../scripts/process.mjs'

const PKG = inRoot('pkg')
const described = JSON.parse(readFileSync(join(PKG, 'package.json'), 'utf8'))

/** Made by wasm-pack, or copied. */
const OTHERS = [
  'CHANGELOG.md', 'LICENSE-APACHE', 'LICENSE-MIT', 'crate/grammar.wasm', 'README.md', 'package.json', 'tritloom.d.ts',
  'tritloom.js', 'tritloom_bg.wasm', 'tritloom_bg.wasm.d.ts', 'widget/readability.d.ts', 'widget/readability.js'
]

const run = (command, args) => {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: PKG, encoding: 'utf8' })
  return { status, stdout, said: `${stdout}\n${stderr}` }
}

/** Each of the CPU's modules is a script and a module of WebAssembly. */
const OF_CPU = cpuModules().modules.flatMap(({ file }) => [file.replace('.wasm', '.js'), file])

/** `npm publish --dry-run` to an address where nothing listens, with `more` options. */
const dryRun = (...more) => {
  const [command, ...args] = npm()
  // `npm test --silent` would silence this npm too: the level is named.
  const options = ['--dry-run', '--json', '--loglevel', 'notice', '--registry', 'http://localhost:1/', '--fetch-retries', '0']
  return run(command, [...args, 'publish', ...options, ...more])
}

test('what would be published: each source compiled, with its types and its map, and these files', () => {
  // While something is missing for publishing, a script of the package refuses.
  const { status, stdout, said } = dryRun('--ignore-scripts')
  assert.equal(status, 0, said)
  const found = JSON.parse(stdout)
  const { id, files } = found.files ? found : Object.values(found)[0]
  assert.equal(id, `tritloom@${described.version}`)
  const sources = readdirSync(inRoot('pkg-template'), { recursive: true }).filter(name => name.endsWith('.ts'))
  const compiled = sources.flatMap(source => {
    const name = source.replace(/\.ts$/, '')
    return [`${name}.js`, `${name}.js.map`, `${name}.d.ts`]
  })
  assert.deepEqual(files.map(({ path }) => path).sort(), [...OTHERS, ...OF_CPU, ...compiled].sort())
  // npm then says in the registry which commit and which build the files come from.
  assert.deepEqual(described.publishConfig, { access: 'public', provenance: true })
  assert.match(said, /public access \(dry-run\)/)
})

test('every entry has its types and its script, and nothing needs an installed package', () => {
  for (const [entry, target] of Object.entries(described.exports)) {
    const names = entry.endsWith('*') ? OF_CPU : typeof target === 'string' ? [target] : [target.types, target.default]
    for (const name of names) assert.ok(readFileSync(join(PKG, name)).length > 0, `${entry}: ${name}`)
  }
  for (const field of ['dependencies', 'optionalDependencies']) assert.equal(described[field], undefined, field)
  for (const name of Object.keys(described.peerDependencies)) assert.ok(described.peerDependenciesMeta[name].optional, name)
  const installs = Object.keys(described.scripts ?? {}).filter(name => name !== 'prepublishOnly')
  assert.deepEqual(installs, [])
})

test('while something is missing, `npm publish` refuses and says what', () => {
  const missing = obstacles(address(), hasThreads(inRoot('pkg')))
  const { status, said } = dryRun()
  assert.equal(status === 0, missing.length === 0, said)
  for (const why of missing) assert.ok(said.includes(why.replaceAll('`', '')), said)
})

test('repository, homepage, bugs and author come from the address', () => {
  const template = { name: 'tritloom' }
  const repository = 'https://github.com/someone/tritloom'
  const authors = ['One <one@example.org>', 'Two <two@example.org>']
  assert.deepEqual(describe(template, '1.2.3', { repository, homepage: '', authors }, true), {
    name: 'tritloom',
    version: '1.2.3',
    author: authors[0],
    contributors: [authors[1]],
    homepage: `${repository}#readme`,
    repository: { type: 'git', url: `git+${repository}.git` },
    bugs: { url: `${repository}/issues` }
  })
  const reasons = (repository, authors) => obstacles({ repository, authors }, true)
  assert.deepEqual(reasons(repository, authors), [])
  assert.deepEqual(obstacles({ repository, authors }, false), ['the modules with threads are not there'])
  assert.deepEqual(reasons('', []), ['Cargo.toml has no `repository`', 'Cargo.toml has no `authors`'])
  for (const other of ['https://example.org/tritloom', 'git@github.com:someone/tritloom', 'tritloom']) {
    assert.match(reasons(other, authors).join(), /not an https address on github\.com or gitlab\.com/, other)
    assert.ok(describe(template, '1.2.3', { repository: other, homepage: '', authors }, true).scripts, other)
  }
})

test('the README links to documents only by addresses that work outside of the project', () => {
  const template = readText('pkg-template/README.md')
  const repository = 'https://github.com/someone/tritloom'
  const targets = readme => Array.from(readme.matchAll(/\]\(([^)]+)\)/g), ([, target]) => target)
  const links = targets(linked(template, '1.2.3', { repository }))
  assert.ok(links.includes(`${repository}/blob/v1.2.3/docs/GUIDE.md`), links.join())
  const without = linked(template, '1.2.3', { repository: '' })
  assert.match(without, /guide \(`docs\/GUIDE\.md`\)/)
  const made = readFileSync(join(PKG, 'README.md'), 'utf8')
  for (const target of [...links, ...targets(without), ...targets(made)]) assert.match(target, /^https:/)
})

test('publint has nothing to say', () => {
  const { status, said } = run(nodeTool('publint'), ['--strict', PKG])
  assert.equal(status, 0, said)
  assert.match(said, /All good!/)
})

test('types are found by every way to resolve ES modules', () => {
  const { status, said } = run(nodeTool('attw'), [
    // The module of grammars is fetched, not imported, so it has no types.
    '--pack', PKG, '--exclude-entrypoints', './grammar.wasm',
    '--profile', 'esm-only', '--format', 'ascii', '--no-color', '--no-emoji'
  ])
  assert.equal(status, 0, said)
  for (const entry of Object.keys(described.exports).filter(entry => entry !== './grammar.wasm')) {
    assert.ok(said.includes(`"tritloom${entry.slice(1)}"`), `${entry}\n${said}`)
  }
})
