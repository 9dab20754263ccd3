// The scripts' pure functions.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { llamaComparison, llamaTable } from '../../scripts/bench/llama.mjs'
import { comparison, comparisonTable, peerFolder } from '../../scripts/bench/peer.mjs'
import { ids, rates } from '../../scripts/bench/rates.mjs'
import { promptTexts } from '../../scripts/bench/texts.mjs'
import { figure, limitsTable, loadFigures, lookupGain, table } from '../../scripts/bench/table.mjs'
import { withoutHashes } from '../../scripts/build/imports.mjs'
import {
  BUDGET,
  entriesAgainstBudget,
  ENTRY_BUDGET,
  sizeAgainstBudget
} from '../../scripts/build/size.mjs'
import { standalone } from '../../scripts/build/standalone.mjs'
import { fullText, outline } from '../../scripts/docs/llms.mjs'
import { cargoField, inRoot, lockedVersion } from '../../scripts/paths.mjs'
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
  assert.equal(
    versionIn('rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)'),
    '1.96.0'
  )
  assert.equal(versionIn('wasm-bindgen 0.2.130'), '0.2.130')
  assert.equal(versionIn(null), null)
})

test('the versions of Cargo.toml and Cargo.lock are read', () => {
  assert.match(cargoField('version'), /^\d+\.\d+\.\d+$/)
  assert.match(cargoField('rust-version'), /^1\.\d+$/)
  assert.match(lockedVersion('wasm-bindgen'), /^0\.2\.\d+$/)
  assert.throws(() => lockedVersion('no-such-crate'), /no-such-crate/)
})

test("a module's script gets its imports from its caller", async () => {
  const script = [
    "import { A, B } from './a.js';", 'import * as import1 from "./b.js"', '',
    'export const used = () => [A, B, import1.c];'
  ].join('\n')
  const made = standalone(script)
  const { provide, used } = await import(`data:text/javascript,${encodeURIComponent(made)}`)
  provide({ './a.js': { A: 1, B: 2 }, './b.js': { c: 3 } })
  assert.deepEqual(used(), [1, 2, 3])
  assert.throws(() => standalone("import d from './d.js';"), /imports in a form/)
})

test("Node packages: a missing and another version differ, another platform's does not", () => {
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
    packages: {
      'node_modules/same': { version: '1.0.0' },
      'node_modules/newer': { version: '1.0.0' }
    }
  }
  assert.deepEqual(differing(lock, installed), ['node_modules/newer', 'node_modules/missing'])
})

test('a module over the size budget stops the build, one below it does not', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tritloom-size-'))
  try {
    const path = join(directory, 'module.wasm')
    writeFileSync(path, Buffer.alloc(2 * BUDGET))
    assert.match(sizeAgainstBudget('wasm', path, BUDGET), /wasm 2000 kB, \d+ kB gzipped of 1000 kB/)
    // Random bytes do not compress.
    writeFileSync(path, randomBytes(BUDGET + 1000))
    assert.throws(() => sizeAgainstBudget('wasm', path, BUDGET), /over its budget/)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('an entry counts with what it imports at once, not with what it imports later', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tritloom-entries-'))
  const write = (name, text) => writeFileSync(join(directory, name), text)
  const bytes = size => `export const text = '${randomBytes(size).toString('base64')}'`
  try {
    const exports = { './one': { default: './one.js' }, './package.json': './package.json' }
    write('package.json', JSON.stringify({ name: 'p', exports }))
    write('one.js', "import { two } from './two.js'\nexport const later = () => import('./large.js')")
    write('two.js', "export {\n  text\n} from './three.js'\nexport * from './one.js'")
    write('three.js', bytes(1000))
    write('large.js', bytes(ENTRY_BUDGET))
    assert.equal(entriesAgainstBudget(directory).length, 1)
    assert.match(entriesAgainstBudget(directory)[0], /^p\/one 1\.\d kB gzipped of 11 kB \(\d+ %\)$/)
    write('three.js', bytes(ENTRY_BUDGET))
    assert.throws(() => entriesAgainstBudget(directory), /p\/one is over its budget/)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('the outline for programs that read has a line for each document: title, address, first sentence', () => {
  const readme = '# p\n\nIt does this.\nAnd that.\n'
  const documents = [
    { path: 'docs/A.md', text: '# One\n\nThe first: it is\nhere.\n\n## Part\n' },
    { path: 'docs/B.md', text: '# Two\n\nUp to v1.2 of it. No more.\n' }
  ]
  const found = outline(readme, documents)
  assert.ok(found.startsWith('# p\n\n> It does this.\n\n## Documents\n\n'), found)
  assert.ok(found.includes('\n- [One](docs/documents/A.html): The first.\n'), found)
  assert.ok(found.includes('\n- [Two](docs/documents/B.html): Up to v1.2 of it.\n'), found)
  assert.throws(() => outline(readme, [{ path: 'docs/C.md', text: '# Three\n\n## Part\n' }]), /Three/)
  const full = fullText(readme, documents, 'export interface X {}\n')
  for (const part of [readme, ...documents.map(({ text }) => text), 'export interface X {}']) {
    assert.ok(full.includes(part), part)
  }
})

test("the test programs are taken from cargo's messages, in order of their names", () => {
  const artifact = (name, kind, executable, test = true) =>
    JSON.stringify({
      reason: 'compiler-artifact',
      target: { name, kind: [kind] },
      profile: { test },
      executable
    })
  const messages = [
    artifact('tritloom', 'lib', null, false),
    artifact('tritloom', 'bin', '/t/tritloom', false),
    artifact('tritloom', 'rlib', '/t/tritloom-1'),
    artifact('tritloom', 'bin', '/t/tritloom-2'),
    artifact('kernels', 'test', '/t/kernels-3'),
    'something that a build script printed',
    JSON.stringify({ reason: 'build-finished', success: true })
  ]
  assert.deepEqual(testPrograms(messages.join('\n')), [
    { name: 'kernels', path: '/t/kernels-3' },
    { name: 'src (bin)', path: '/t/tritloom-2' },
    { name: 'src (lib)', path: '/t/tritloom-1' }
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

test("the times of browser tests are read from Playwright's report, tries added up", () => {
  const spec = (title, ...durations) => ({
    title,
    tests: [{ results: durations.map(duration => ({ duration })) }]
  })
  const report = {
    suites: [
      {
        file: 'web/chat.spec.ts',
        specs: [spec('answers', 700)],
        suites: [{ file: 'web/chat.spec.ts', specs: [spec('retries', 100, 50)] }]
      }
    ]
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
  assert.deepEqual(slowest.slice(0, 2), [
    '      11 s  test 11  [Rust]',
    '      11 s  chat  [Browser]'
  ])
  assert.match(
    printed,
    /^Summary\n {2}passed {2}Rust +12 tests +66 s\n {2}passed {2}Browser +12 s\n/
  )
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
  assert.deepEqual(tally(printed), {
    passed: 3 + 1 + 12 + 20,
    failed: 2 + 1 + 2 + 1,
    skipped: 1 + 1 + 3
  })
})

test('a figure is the median of its values, with the least and the most', () => {
  assert.deepEqual(figure({ what: 'x', unit: 'ms', values: [3, 1, 10] }), {
    what: 'x',
    unit: 'ms',
    runs: 3,
    median: 3,
    least: 1,
    most: 10
  })
  assert.equal(figure({ values: [4, 1, 2, 9] }).median, 3)
  const decode = figure({ values: [100], bytesPerToken: 1e9, bandwidth: 400 })
  assert.deepEqual([decode.median, decode.share], [100, 0.25])
})

test('loads are told apart by where the bytes came from', () => {
  const load = n => ({
    cold: {
      compiled: 3 * n,
      rest: 4 * n,
      whole: 1000 * n,
      stored: 2000 * n,
      ready: n,
      token: 2 * n,
      most: { renderer: n << 20, browser: 0, together: (2 * n) << 20 }
    },
    // As in a page that cannot find it out.
    stored: { compiled: n, rest: 0, whole: 500 * n, ready: n, token: n, most: {} }
  })
  const figures = loadFigures([load(1), load(3)])
  assert.deepEqual(figures[0], { what: 'load from the server', unit: 's', values: [1, 3] })
  const found = Object.fromEntries(figures.slice(1).map(({ what, values }) => [what, values]))
  assert.deepEqual(found, {
    'load and store, from the server': [2, 6],
    "first answer's kernels compiled, from the server": [3, 9],
    'ready to all kernels compiled, from the server': [4, 12],
    'last byte to ready, from the server': [1, 3],
    'last byte to first token, from the server': [2, 6],
    "memory in the page's process, from the server": [1, 3],
    "memory in the browser's, from the server": [0, 0],
    "memory in all but the GPU's, from the server": [2, 6],
    'load from storage': [0.5, 1.5],
    "first answer's kernels compiled, from storage": [1, 3],
    'ready to all kernels compiled, from storage': [0, 0],
    'last byte to ready, from storage': [1, 3],
    'last byte to first token, from storage': [1, 3],
    "memory in the page's process, from storage": [0, 0],
    "memory in the browser's, from storage": [0, 0],
    "memory in all but the GPU's, from storage": [0, 0]
  })
})

test('a comparison has a column for tritloom and one for the peer, with token counts that the peer reports', () => {
  const info = { name: 'a model', adapter: 'a card' }
  const cold = {
    ours: { loaded: 1500, first: 1600 },
    peer: { loaded: 9900, first: 11_000 },
    info,
    userAgent: 'Mozilla/5.0 (X11) HeadlessChrome/156.0.1.2 Safari/537'
  }
  const answers = [
    {
      promptTokens: 427,
      ours: [
        { first: 50, decode: 200 },
        { first: 70, decode: 180 }
      ],
      peer: [
        { first: 748, decode: 33 },
        { first: 752, decode: 35 }
      ]
    },
    { promptTokens: 2500, ours: [{ first: 300, decode: 150 }], peer: [{ hangs: true }] }
  ]
  const report = comparison('0xbitnet', {
    cold,
    stored: { ours: { loaded: 500, first: 600 }, peer: { loaded: 4000, first: 5000 } },
    answers
  })
  assert.equal(report.browser, 'Chrome/156.0.1.2')
  assert.deepEqual(report.rows[0], {
    what: 'load from the server',
    unit: 's',
    ours: { runs: 1, median: 1.5, least: 1.5, most: 1.5 },
    peer: { runs: 1, median: 9.9, least: 9.9, most: 9.9 }
  })
  assert.deepEqual(
    report.rows.slice(1).map(({ what, ours, peer }) => [what, ours?.median, peer?.median]),
    [
      ['load to the first token, from the server', 1.6, 11],
      ['load from storage', 0.5, 4],
      ['load to the first token, from storage', 0.6, 5],
      ['time to first token, 427-token prompt', 60, 750],
      ['decode, 427 tokens of context', 190, 34],
      ['time to first token, 2500-token prompt', 300, undefined],
      ['decode, 2500 tokens of context', 150, undefined]
    ]
  )
  const [title, , columns, ...rows] = comparisonTable(report).split('\n')
  assert.equal(title, 'a model on a card, Chrome/156.0.1.2: one file, one browser, one run')
  assert.match(columns, /^ +tritloom +0xbitnet$/)
  assert.match(
    rows[4],
    /^time to first token, 427-token prompt +ms +60\.0 \(50\.0 to 70\.0, n=2\) +750\.0 \(748\.0 to 752\.0, n=2\)$/
  )
  assert.match(rows[6], /300\.0 \(300\.0 to 300\.0, n=1\) +–$/)
})

/** Answers of so many tokens, of which the last never comes if `hangs`. Notes the prompts, and how many were stopped. */
const engine = ({ least = Infinity, hangs = false } = {}) => {
  const prompts = []
  let stopped = 0
  const answer = (prompt, count) => {
    prompts.push(prompt)
    const tokens = (async function* () {
      for (let made = 0; made < Math.min(count, least); made++) {
        await new Promise(resolve => setTimeout(resolve, 1))
        yield made + 1
      }
      if (hangs) await new Promise(() => {})
    })()
    return { tokens, stop: () => stopped++ }
  }
  return { answer, prompts, stopped: () => stopped }
}

test('an engine is timed by when its tokens come, with another prompt in each run', async () => {
  const { answer, prompts } = engine()
  const how = { decode: [3, 5], prefill: [4], tokens: 6, runs: 2, patience: 60 }
  const found = await rates(answer, ids(32), how)
  assert.deepEqual(
    found.map(({ what, values, why }) => [what, values.length, why]),
    [
      ['decode, 3 tokens of context', 2, undefined],
      ['decode, 5 tokens of context', 2, undefined],
      ['prompt of 4 tokens', 2, undefined]
    ]
  )
  for (const value of found.flatMap(({ values }) => values)) assert.ok(value > 0 && Number.isFinite(value), value)
  assert.deepEqual(prompts.map(ids => ids.length), [3, 3, 3, 5, 5, 5, 4, 4, 4])
  assert.equal(new Set(prompts.map(String)).size, 9)
  assert.ok(prompts.flat().every(id => id >= 0 && id < 32))
})

test('an engine that stops giving tokens is asked for nothing more, and what it gave counts', async () => {
  const how = { decode: [3], prefill: [4], tokens: 6, runs: 2, patience: 0.05 }
  const slow = engine({ least: 3, hangs: true })
  const [decode, prefill] = await rates(slow.answer, ids(32), how)
  assert.equal(decode.values.length, 1)
  assert.deepEqual([prefill.values, prefill.why], [[], 'no token for 0.05 s in an answer before'])
  assert.deepEqual([slow.prompts.length, slow.stopped()], [1, 1])
  const [none] = await rates(engine({ least: 1, hangs: true }).answer, ids(32), how)
  assert.deepEqual([none.values, none.why], [[], '1 of its tokens in 0.05 s'])
  const failing = () => ({ tokens: (async function* () { throw new Error('broken\nat a line') })(), stop: () => {} })
  const failed = await rates(failing, ids(32), how)
  assert.deepEqual(failed.map(({ values, why }) => [values, why]), [[[], 'broken'], [[], 'broken']])
  const [ended] = await rates(engine({ least: 0 }).answer, ids(32), { ...how, patience: 60 })
  assert.deepEqual([ended.values, ended.why], [[], 'its answers end at once'])
})

test('prompts of an engine that takes texts have the right number of tokens, another one in each run', async () => {
  // A token for each letter, and one for each word that is known.
  const tokenize = async text => Uint32Array.from(text.match(/ the| dog|./gu), part => part.length)
  const texts = await promptTexts(tokenize, { decode: [5], prefill: [5, 40], runs: 2 })
  assert.deepEqual(Object.keys(texts), ['5', '40'])
  for (const [length, all] of Object.entries(texts)) {
    assert.equal(new Set(all.map(({ text }) => text[0])).size, 3)
    for (const { text, ids } of all) assert.deepEqual([ids, ids.length], [await tokenize(text), Number(length)])
  }
  const even = async text => new Uint32Array(2 * text.length)
  await assert.rejects(promptTexts(even, { decode: [41], prefill: [], runs: 0 }), /no text of 41 tokens was found/)
})

test('a comparison with llama.cpp has a column for each engine, and says what one did not give', () => {
  const side = (threads, ...values) => ({
    threads, found: values.map(each => ({ what: '', values: [each] })), userAgent: 'HeadlessChrome/156.0.1.2 Safari/537'
  })
  const report = llamaComparison({
    peer: 'p 1', backend: 'cpu', machine: { cpu: 'a processor', threads: 4 }, engines: ['native', 'page', 'p'], tokens: 8,
    decode: [16], prefill: [256],
    measured: [
      {
        threads: 1,
        sides: [
          { threads: 1, info: { name: 'a model' }, found: [{ runs: 2, median: 30, least: 29, most: 31 }, { why: 'it would take long' }] },
          side(1, 20, 90),
          side(1, 10, 45)
        ]
      },
      { threads: 4, sides: [side(4, 60, 200), side(1, 20, 90), { why: 'it ended' }] }
    ]
  })
  assert.deepEqual(report.rows.map(({ what, threads, figures }) => [what, threads, ...figures.map(({ median, why }) => median ?? why)]), [
    ['decode, 16 tokens of context', 1, 30, 20, 10],
    ['prompt of 256 tokens', 1, 'it would take long', 90, 45],
    ['decode, 16 tokens of context', 4, 60, 20, 'it ended'],
    ['prompt of 256 tokens', 4, 200, 90, 'it ended']
  ])
  const [title, , , columns, ...lines] = llamaTable(report).split('\n')
  assert.equal(title, 'a model beside p 1 on the CPU: a processor, threads: 4; Chrome/156.0.1.2')
  assert.match(columns, /^ +threads +native +page +p$/)
  assert.match(lines[0], /^decode, 16 tokens of context, tok\/s +1 +30\.0 \(29\.0 to 31\.0, n=2, 3\.00 x\) +20\.0 \(.*, n=1, 2\.00 x\) +10\.0 \(10\.0 to 10\.0, n=1\)$/)
  assert.match(lines[2], / 20\.0 \(20\.0 to 20\.0, n=1, threads: 1\) +–$/)
  assert.deepEqual(lines.slice(4), [
    'native, threads: 1, prompt of 256 tokens: it would take long',
    'p, threads: 4, decode, 16 tokens of context: it ended',
    'p, threads: 4, prompt of 256 tokens: it ended'
  ])
})

test('a peer is a folder with an index.js', () => {
  assert.throws(() => peerFolder(tmpdir()), /--peer .*: there is no index\.js in it\./)
  const directory = mkdtempSync(join(tmpdir(), 'tritloom-peer-'))
  try {
    writeFileSync(join(directory, 'index.js'), '')
    assert.equal(peerFolder(relative(process.cwd(), directory)), directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('the benchmark refuses what it does not understand, before it builds or opens anything', () => {
  const bench = (...args) =>
    spawnSync(process.execPath, [inRoot('scripts', 'bench.mjs'), ...args], { encoding: 'utf8' })
  const refused = [
    [['--peer', tmpdir()], 'there is no index.js in it.'],
    [['--model', 'a', '--shape', 'tiny'], '--model and --shape exclude each other.'],
    [['--visits', '--limits'], '--visits and --limits exclude each other.'],
    ...['lookup', 'sampling', 'options', 'batch', 'profile'].map(addition => [
      ['--visits', `--${addition}`],
      `--visits and --${addition} exclude each other.`
    ]),
    [['--visits', '--embed'], '--visits and --embed exclude each other.'],
    [['--limits', '--soak', '9'], '--limits and --soak exclude each other.'],
    [['--peer', tmpdir(), '--context', '9'], '--peer and --context exclude each other.'],
    [['--peer', 'wllama', '--lookup'], '--peer and --lookup exclude each other.'],
    [['--peer', 'node-llama-cpp'], '--peer node-llama-cpp goes with --backend cpu only.'],
    [['--threads', '0'], '--threads takes a whole number from 1, not `0`.'],
    [
      ['--shape', 'tiny', '--embedding-deviation', '1', '--lookup'],
      '--lookup and --embedding-deviation exclude each other.'
    ],
    [['--embedding-deviation', '1'], '--embedding-deviation goes with --shape only.'],
    [['--browser', 'lynx'], '--browser takes chromium or firefox, not `lynx`.'],
    [['--browser', 'firefox', '--visits'], '--visits goes with Chromium only.'],
    [['--browser', 'firefox', '--soak', '9'], '--soak goes with Chromium only.'],
    [['--context', '0'], '--context takes a whole number from 1, not `0`.'],
    [['--backend', 'gpu'], '--backend takes webgpu or cpu.'],
    [['--backend', 'cpu', '--limits'], '--limits is about the GPU.'],
    [['--runs', '0'], '--runs takes a whole number from 1, not `0`.'],
    [
      ['--prefill', '16,many'],
      '--prefill takes whole numbers from 1, separated by commas, not `16,many`.'
    ]
  ]
  for (const [args, message] of refused) {
    const { status, stdout, stderr } = bench(...args)
    assert.equal(status, 1)
    assert.equal(stdout, '')
    assert.ok(stderr.includes(message), stderr)
  }
})

test('the report is printed as a table, with profiles, prompt lookup and a soak where they were asked for', () => {
  const info = {
    name: 'a model',
    adapter: 'a card',
    bytes: 1.18e9,
    gpuBytes: 1.4e9,
    dispatchesPerToken: 242,
    kernels: ['subgroups', 'dot4']
  }
  const kernel = {
    kernel: 'gemv_i2s',
    calls: 30,
    microseconds: 600,
    bytes: 5e8,
    gigabytesPerSecond: 833.3,
    share: 0.25
  }
  const lookup = lookupGain({
    tokens: 128,
    promptTokens: 160,
    plain: [100],
    lookup: [250],
    draftPasses: 20,
    draftedTokens: 120,
    acceptedTokens: 90
  })
  const printed = table({
    browser: 'Chromium 156',
    info,
    bandwidth: 3300,
    memory: { wasm: 2.5e6 },
    figures: [
      figure({ what: 'decode', unit: 'tok/s', values: [400], bytesPerToken: 1e9, bandwidth: 3300 })
    ],
    leftOut: [{ what: 'prefill, 3500-token prompt', seconds: 600 }],
    lookups: [lookup],
    profiles: [
      { context: 16, tokens: 1, kernels: [kernel] },
      { context: 16, tokens: 1, drawn: 'min-p', kernels: [kernel] }
    ],
    soak: {
      tokens: 2000,
      chats: 3,
      first: 400,
      last: 390,
      lastAtFirst: 391,
      rates: [400, 390],
      wasmBytesBefore: 1,
      wasmBytesAfter: 2,
      gpuBytesBefore: 3,
      gpuBytesAfter: 4
    }
  })
  const expected = [
    'a model on a card, Chromium 156',
    '1.18 GB file, 1.40 GB on the GPU, 2.5 MB of wasm memory, 242 dispatches per token',
    'memory read at 3300.0 GB/s at best',
    'kernels: subgroups dot4',
    'left out, it would take 10 min: prefill, 3500-token prompt',
    'prompt lookup: 128 tokens after 160 that count up and begin again; the same tokens without it',
    'copied unchanged: 2.50 times as fast; draft passes: 20, accepted in each: 4.50 of 6.00 tokens',
    '1 tokens after 16: 600 us in kernels',
    '1 tokens after 16, min-p: 600 us in kernels',
    '2000 tokens in 3 chats: the first at 400.0 tok/s, the last at 390.0 (391.0 at the same positions when first reached)',
    'thousand by thousand: 400.0, 390.0 tok/s',
    'wasm memory: 1 bytes after the first token, 2 at the end; GPU buffers: 3 bytes, 4 at the end'
  ]
  const lines = printed.split('\n')
  for (const line of expected) assert.ok(lines.includes(line), `${line}\n${printed}`)
  assert.match(
    printed,
    /^decode +400\.0 tok\/s +\(400\.0 to 400\.0, n=1\) +1000\.0 MB a token, 12\.1 % of memory's speed$/m
  )
  assert.match(
    printed,
    /^ {2}gemv_i2s +30 x +20\.0 us = +600 us +500\.0 MB +833\.3 GB\/s +25\.0 %$/m
  )
})

test('the report of --limits has the kernels and the figures of each limit', () => {
  const values = { what: 'decode', unit: 'tok/s', values: [400] }
  const printed = limitsTable({
    browser: 'Chromium 156',
    info: { name: 'a model', adapter: 'a card' },
    limits: [
      { name: 'all', kernels: ['a', 'b'], dispatchesPerToken: 155, figures: [figure(values)], leftOut: [] },
      {
        name: 'less',
        kernels: ['c'],
        dispatchesPerToken: 158,
        figures: [],
        leftOut: [{ what: 'decode', seconds: 600 }]
      }
    ]
  })
  const [first, ...rest] = printed.split('\n')
  assert.equal(first, 'a model on a card, Chromium 156')
  assert.match(rest[3], /^decode +400\.0 tok\/s +\(400\.0 to 400\.0, n=1\)$/)
  assert.deepEqual(rest.toSpliced(3, 1), [
    '',
    'all: 155 dispatches per token',
    'kernels: a b',
    '',
    'less: 158 dispatches per token',
    'kernels: c',
    'left out, it would take 10 min: decode'
  ])
})

test('the names of imports lose their hashes in the module and in its script, and stay apart', async () => {
  const section = (id, ...bytes) => [id, bytes.length, ...bytes]
  const text = said => [said.length, ...Buffer.from(said)]
  const [first, second] = ['__wbg_get_0123456789abcdef', '__wbg_get_fedcba9876543210']
  const imported = [first, second, 'plain'].flatMap(name => [...text('./a.js'), ...text(name), 0, 0])
  const module = Buffer.from([
    ...[0, 97, 115, 109, 1, 0, 0, 0],
    ...section(1, 1, 0x60, 0, 1, 0x7f),
    ...section(2, 3, ...imported),
    ...section(3, 1, 0),
    ...section(7, 1, ...text('difference'), 0, 3),
    // The first function minus the second.
    ...section(10, 1, 7, 0, 0x10, 0, 0x10, 1, 0x6b, 0x0b)
  ])
  const { wasm, script } = withoutHashes(module, `({ ${first}: () => 7, ${second}: () => 4, plain: () => 0 })`)
  assert.equal(script, '({ __wbg_get: () => 7, __wbg_get_2: () => 4, plain: () => 0 })')
  const imports = { './a.js': { __wbg_get: () => 7, __wbg_get_2: () => 4, plain: () => 0 } }
  assert.equal((await WebAssembly.instantiate(wasm, imports)).instance.exports.difference(), 3)
  // A third one whose own name ends with that number cannot be told from the second.
  const same = `${first} ${second} __wbg_get_2_00112233aabbccdd`
  assert.throws(() => withoutHashes(module, same), /same short name/)
  // An import of something else is not taken for a function.
  const memory = Buffer.from([...module.subarray(0, 8), ...section(2, 1, ...text('a'), ...text('b'), 2, 0, 1)])
  assert.throws(() => withoutHashes(memory, ''), /imports b/)
  // But memory that threads share is left as it is: here from 1 to 300 pages.
  const sharing = [...text('a'), ...text('memory'), 2, 3, 1, 0xac, 2]
  const shared = Buffer.from([...module.subarray(0, 15), ...section(2, 2, ...sharing, ...text('a'), ...text(first), 0, 0)])
  const kept = withoutHashes(shared, `${first}`).wasm
  const a = { memory: new WebAssembly.Memory({ initial: 1, maximum: 300, shared: true }), __wbg_get: () => 7 }
  await WebAssembly.instantiate(kept, { a })
  await assert.rejects(WebAssembly.instantiate(kept, { a: { ...a, memory: undefined } }), WebAssembly.LinkError)
})
