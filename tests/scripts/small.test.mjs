// The scripts' pure functions.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { figure, loadFigures } from '../../scripts/bench/table.mjs'
import { BUDGET, sizeAgainstBudget } from '../../scripts/build/size.mjs'
import { cargoField, lockedVersion } from '../../scripts/paths.mjs'
import { differing } from '../../scripts/setup/node.mjs'
import { atLeast, versionIn } from '../../scripts/setup/version.mjs'
import { testPrograms } from '../../scripts/test/rust.mjs'
import { tally } from '../../scripts/test/tally.mjs'
import { playwrightTimes, testTimes, timesReport } from '../../scripts/test/times.mjs'

test('versions compare as numbers, not as text', () => {
  assert.ok(atLeast('1.95.0', '1.95'))
  assert.ok(atLeast('1.100.0', '1.95'))
  assert.ok(atLeast('0.13.10', '0.13.9'))
  assert.ok(!atLeast('1.94.1', '1.95'))
  assert.ok(!atLeast('18.20.0', '20.19'))
})

test('a version is found in what a tool prints', () => {
  assert.equal(versionIn('rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)'), '1.96.0')
  assert.equal(versionIn('wasm-bindgen 0.2.130'), '0.2.130')
  assert.equal(versionIn(null), null)
})

test('the versions of Cargo.toml and Cargo.lock are read', () => {
  assert.match(cargoField('version'), /^\d+\.\d+\.\d+$/)
  assert.match(cargoField('rust-version'), /^1\.\d+$/)
  assert.match(lockedVersion('wasm-bindgen'), /^0\.2\.\d+$/)
  assert.throws(() => lockedVersion('no-such-crate'), /no-such-crate/)
})

test('Node packages: a missing and another version differ, another platform\'s does not', () => {
  const lock = {
    packages: {
      '': { version: '0.0.0' },
      'node_modules/same': { version: '1.0.0' },
      'node_modules/newer': { version: '2.0.0' },
      'node_modules/missing': { version: '1.0.0' },
      'node_modules/other-platform': { version: '1.0.0', optional: true }
    }
  }
  const installed = {
    packages: { 'node_modules/same': { version: '1.0.0' }, 'node_modules/newer': { version: '1.0.0' } }
  }
  assert.deepEqual(differing(lock, installed), ['node_modules/newer', 'node_modules/missing'])
})

test('a module over the size budget stops the build, one below it does not', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ternlight-size-'))
  try {
    const path = join(directory, 'module.wasm')
    writeFileSync(path, Buffer.alloc(2 * BUDGET))
    assert.match(sizeAgainstBudget(path), /wasm 2000 kB, \d+ kB gzipped of 1000 kB/)
    // Random bytes do not compress.
    writeFileSync(path, randomBytes(BUDGET + 1000))
    assert.throws(() => sizeAgainstBudget(path), /over its budget/)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('the test programs are taken from cargo\'s messages', () => {
  const artifact = (name, kind, executable, test = true) =>
    JSON.stringify({ reason: 'compiler-artifact', target: { name, kind: [kind] }, profile: { test }, executable })
  const messages = [
    artifact('ternlight', 'lib', null, false),
    artifact('ternlight', 'bin', '/t/ternlight', false),
    artifact('ternlight', 'rlib', '/t/ternlight-1'),
    artifact('ternlight', 'bin', '/t/ternlight-2'),
    artifact('kernels', 'test', '/t/kernels-3'),
    'something that a build script printed',
    JSON.stringify({ reason: 'build-finished', success: true })
  ]
  assert.deepEqual(testPrograms(messages.join('\n')), [
    { name: 'src (lib)', path: '/t/ternlight-1' },
    { name: 'src (bin)', path: '/t/ternlight-2' },
    { name: 'kernels', path: '/t/kernels-3' }
  ])
})

test('the times of tests are read from what libtest and Node print', () => {
  const printed = `
     Running kernels
test matrix::rows ... ok <0.250s>
test matrix::columns - should panic ... ok <1.500s>
test soak ... ignored
     Running engine
test matrix::rows ... FAILED <2.000s>
\u001b[32m✔ versions compare as numbers \u001b[90m(10.5ms)\u001b[39m\u001b[39m
✖ a test of tests (fails) (3ms)
`
  assert.deepEqual(testTimes(printed), [
    { name: 'kernels: matrix::rows', ms: 250 },
    { name: 'kernels: matrix::columns - should panic', ms: 1500 },
    { name: 'engine: matrix::rows', ms: 2000 },
    { name: 'versions compare as numbers', ms: 10.5 },
    { name: 'a test of tests (fails)', ms: 3 }
  ])
})

test('the times of browser tests are read from Playwright\'s report, tries added up', () => {
  const spec = (title, ...durations) => ({ title, tests: [{ results: durations.map(duration => ({ duration })) }] })
  const report = {
    suites: [{
      file: 'web/chat.spec.ts',
      specs: [spec('answers', 700)],
      suites: [{ file: 'web/chat.spec.ts', specs: [spec('retries', 100, 50)] }]
    }]
  }
  assert.deepEqual(playwrightTimes(report), [
    { name: 'web/chat.spec.ts: answers', ms: 700 },
    { name: 'web/chat.spec.ts: retries', ms: 150 }
  ])
})

test('the ten slowest tests of all runners are reported, the slowest first', () => {
  const times = Array.from({ length: 12 }, (_, i) => ({ name: `test ${i}`, ms: 1000 * i }))
  const rows = [
    { name: 'Rust', outcome: 'passed', note: '12 tests', ms: 66_000, times },
    { name: 'Browser', outcome: 'passed', ms: 11_500, times: [{ name: 'chat', ms: 10_500 }] }
  ]
  const { printed, file } = timesReport(rows)
  const slowest = printed.split('The 10 slowest tests\n')[1].split('\n')
  assert.equal(slowest.length, 10)
  assert.deepEqual(slowest.slice(0, 2), ['      11 s  test 11  [Rust]', '      11 s  chat  [Browser]'])
  assert.match(printed, /^Summary\n {2}passed {2}Rust +12 tests +66 s\n {2}passed {2}Browser +12 s\n/)
  assert.match(file, /\n {4}0\.00 s {2}test 0 {2}\[Rust\]\n$/)
})

test('the tests of all three runners are counted', () => {
  const printed = `running 3 tests
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
ℹ tests 14
ℹ pass 12
ℹ fail 1
# skipped 1
\u001b[32m  20 passed\u001b[39m\u001b[2m (1.2m)\u001b[22m
  2 failed
    1) chat.spec.ts
  1 flaky
  3 did not run
`
  assert.deepEqual(tally(printed), { passed: 3 + 1 + 12 + 20, failed: 2 + 1 + 2 + 1, skipped: 1 + 1 + 3 })
})

test('a figure is the median of its values, with the least and the most', () => {
  assert.deepEqual(figure({ what: 'x', unit: 'ms', values: [3, 1, 10] }), { what: 'x', unit: 'ms', runs: 3, median: 3, least: 1, most: 10 })
  assert.equal(figure({ values: [4, 1, 2, 9] }).median, 3)
  const decode = figure({ values: [100], bytesPerToken: 1e9, bandwidth: 400 })
  assert.deepEqual([decode.median, decode.share], [100, 0.25])
})

test('loads are told apart by where the bytes came from', () => {
  const load = n => ({
    cold: { whole: 1000 * n, ready: n, token: 2 * n, most: { renderer: n << 20, browser: 0, together: 2 * n << 20 } },
    // As where nobody can tell.
    stored: { whole: 500 * n, ready: n, token: n, most: {} }
  })
  const figures = loadFigures([load(1), load(3)])
  assert.deepEqual(figures[0], { what: 'load from the server', unit: 's', values: [1, 3] })
  assert.deepEqual(figures.map(({ what }) => what).slice(2, 7), [
    'last byte to first token, from the server', "memory in the page's process, from the server",
    "memory in the browser's, from the server", "memory in all but the GPU's, from the server", 'load from storage'
  ])
  assert.deepEqual([3, 4, 5].map(at => figures[at].values), [[1, 3], [0, 0], [2, 6]])
  assert.deepEqual(figures[11].values, [0, 0])
})
