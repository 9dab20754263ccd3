// The checks of `npm test`, in the order within their lane: what fails soonest comes first.
//
// `step` runs a check. It throws if the check fails, and may return a note for the summary. It
// gets:
//   mode      'quick', 'usual' or 'all'
//   hear      a function that takes what test runners print, and counts the tests in it
//   times     an array for the times of tests that are not in what was printed
// `part` is the run of a part that has the check, or several of them; `lane` tells which checks run
// one after the other. A quick run leaves out the `slow` checks.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildDemos } from '../demos.mjs'
import { buildDocs } from '../docs/build.mjs'
import { audit, expectScores } from '../lighthouse/audit.mjs'
import { inRoot } from '../paths.mjs'
import { capture, nodeTool, npm, runHearing, runOpen, runQuietly } from '../process.mjs'
import { findBrowser, swiftShader } from '../setup/browser.mjs'
import { findNewerNode } from '../setup/node.mjs'
import { llvmpipe } from '../setup/vulkan.mjs'
import { TARGET, wasmEnvironment } from '../setup/wasm-target.mjs'
import { smokeTraining } from '../train/smoke.mjs'
import { buildTests, runDocTests, runTests } from './rust.mjs'
import { readPlaywrightTimes } from './times.mjs'

/**
 * The test programs that a run of everything runs on each driver. Tests whose result no driver can
 * change are in tests/session.
 */
const ON_GPU = ['kernels', 'engine']

/** Tests with this word in their path load the bundled model. A quick run leaves them out. */
const BUNDLED = 'bundled'

/** Milliseconds after which a file of tests for Node fails. Without a limit, a wait that never ends would hold the run. */
const NODE_TIMEOUT = 600_000

const nodeTests =
  (folder, node = () => process.execPath) =>
  ({ hear }) => {
    const names = readdirSync(inRoot('tests', folder)).filter(name => name.endsWith('.test.mjs'))
    const files = names.map(name => inRoot('tests', folder, name))
    const program = node()
    if (!program) return 'left out: no Node that is new enough'
    return runHearing(program, ['--test', `--test-timeout=${NODE_TIMEOUT}`, '--test-reporter=spec', ...files], hear)
  }

/** Deno, Bun and Dawn are fetched only for a run of everything. */
const testOthers = async ({ mode, ...run }) => {
  if (mode !== 'all') return 'only with `all`'
  const folder = inRoot('tests', 'node', 'others')
  const [command, ...args] = npm()
  await runQuietly(command, [...args, 'ci', '--prefix', folder, '--no-audit', '--no-fund'], { cwd: folder, log: 'others-npm' })
  return nodeTests('node/others')(run)
}

const checkFormat = () => runOpen('cargo', ['fmt', '--all', '--check'])

const lintNative = () =>
  runOpen('cargo', ['clippy', '--quiet', '--workspace', '--all-targets', '--', '-D', 'warnings'])

const lintWasm = async () => {
  const env = wasmEnvironment() ?? {}
  const args = ['--quiet', '--target', TARGET, '--lib']
  const hasClippy = capture('cargo', ['clippy', '--version'], { env }) !== null
  if (hasClippy) {
    // A page's modules for the CPU have other code than that for the GPU, which comes with the default features.
    const features = ['relaxed-simd', 'threads'].map(name => ['--no-default-features', '--features', name])
    for (const which of [['--workspace'], ...features])
      await runOpen('cargo', ['clippy', ...which, ...args, '--', '-D', 'warnings'], { env })
    return undefined
  }
  // Debian's Rust for WebAssembly comes without clippy: the compiler's own lints have to do.
  await runOpen('cargo', ['rustc', '--profile', 'check', ...args, '--', '-D', 'warnings'], { env })
  return "rustc's lints, no clippy"
}

const libtestArgs = { quick: ['--skip', BUNDLED], usual: [], all: ['--include-ignored'] }

/** The test programs, those of the GPU last, because they take longest. */
let programs
const buildRustTests = async () => {
  const all = await buildTests()
  programs = [
    ...all.filter(({ name }) => !ON_GPU.includes(name)),
    ...all.filter(({ name }) => ON_GPU.includes(name))
  ]
}

/**
 * All Rust tests. On Linux those of the GPU run on llvmpipe, unless VK_DRIVER_FILES names a driver.
 */
const testNative = async ({ mode, hear }) => {
  const icd = process.env.VK_DRIVER_FILES || llvmpipe()
  await runTests(programs, hear, {
    args: libtestArgs[mode],
    env: icd ? { VK_DRIVER_FILES: icd } : {}
  })
  await runDocTests(hear)
}

/** Only in a run of everything: Chromium's tests run on SwiftShader anyway, and it compiles slowly. */
const testOnSwiftShader = async ({ mode, hear }) => {
  if (mode !== 'all') return 'only with `all`'
  if (process.platform !== 'linux') return 'left out: not Linux'
  const icd = swiftShader()
  if (!icd)
    throw new Error(
      `${findBrowser()} has no SwiftShader (vk_swiftshader_icd.json); Debian's Chromium has.`
    )
  const onGpu = programs.filter(({ name }) => ON_GPU.includes(name))
  await runTests(onGpu, hear, { args: libtestArgs.all, env: { VK_DRIVER_FILES: icd } })
}

/** With links to the documentation where that is made. */
const makeDemos = ({ mode }) => buildDemos({ docs: mode === 'all' })

/** Fetches TypeDoc. The contents of the pages are tested without it. */
const makeDocs = ({ mode }) => (mode === 'all' ? buildDocs() : 'only with `all`')

/** Lighthouse's scores of each page, but that of its speed. Lighthouse is fetched. */
const auditPages = async ({ mode }) => {
  if (mode !== 'all') return 'only with `all`'
  const pages = await audit(['accessibility', 'best-practices', 'seo'])
  expectScores(pages, 95)
  return `${pages.length} pages`
}

const makePackage = () => runOpen(process.execPath, [inRoot('scripts', 'build.mjs'), '--no-setup'])

/** Every folder with a tsconfig.json, but that of the package, which the build compiles. */
const checkTypes = async () => {
  const projects = ['scripts', 'tests', 'www', ...foldersOf('tests'), ...foldersOf('www')]
    .map(folder => inRoot(folder, 'tsconfig.json'))
    .filter(existsSync)
  for (const project of projects) await runOpen(nodeTool('tsc'), ['--project', project, '--noEmit'])
}

const foldersOf = folder => readdirSync(inRoot(folder)).map(name => join(folder, name))

/**
 * Tests tagged @quick are in a quick run. Tests tagged @all are only in a run of everything, which leaves
 * out those tagged @usual, because it has more of the same. Those tagged @soak are a check of their own.
 */
const playwrightArgs = {
  quick: ['--grep', '@quick'],
  usual: ['--grep-invert', '@all|@soak'],
  all: ['--grep-invert', '@soak|@usual']
}

const testInBrowser = ({ mode, ...run }) => playwright(playwrightArgs[mode], run)

/** How long random calls are made. */
const SOAK_MINUTES = { usual: 0.5, all: 30 }

const makeRandomCalls = ({ mode, ...run }) =>
  playwright(['--grep', '@soak'], run, {
    SOAK_MINUTES: process.env.SOAK_MINUTES ?? String(SOAK_MINUTES[mode])
  })

const playwright = async (args, { hear, times }, more = {}) => {
  // Ports of this run's own, because another run may have left its server behind.
  const PORT = process.env.PORT ?? String(20_000 + (process.pid % 20_000))
  const report = inRoot('target', 'playwright.json')
  const env = { CHROMIUM: findBrowser(), PORT, PLAYWRIGHT_JSON_OUTPUT_NAME: report, ...more }
  rmSync(report, { force: true })
  try {
    await runHearing(
      nodeTool('playwright'),
      ['test', '--reporter=list,json', ...args],
      hear,
      { env }
    )
  } finally {
    if (existsSync(report)) times.push(...readPlaywrightTimes(report))
  }
}

/** Lanes run at the same time. The longest is first, because its output comes as it is printed. */
export const LANES = ['native', 'web']

const native = { lane: 'native', part: 'native' }
const web = { lane: 'web', part: 'web' }

export const checks = [
  { lane: 'native', part: 'scripts', name: 'Tests of the scripts', step: nodeTests('scripts') },
  { ...native, name: 'Format', step: checkFormat },
  { ...native, name: 'Clippy, native', step: lintNative },
  { ...native, name: 'Clippy, WebAssembly', step: lintWasm },
  { ...native, name: 'Rust tests, built', step: buildRustTests },
  { ...native, name: 'Rust tests, llvmpipe', step: testNative },
  { ...native, name: 'GPU tests, SwiftShader', step: testOnSwiftShader },
  { ...web, part: ['web', 'soak'], name: 'Package', step: makePackage },
  { ...web, name: 'Package in Node', step: nodeTests('pkg') },
  { ...web, name: 'Logic of the demos', step: nodeTests('www') },
  { ...web, name: 'Node, on the CPU', step: nodeTests('node') },
  { ...web, name: 'Training', slow: true, step: smokeTraining },
  { ...web, name: 'Deno, Bun, and Node with a GPU', step: testOthers },
  { ...web, name: 'AI SDK in Node 22', step: nodeTests('ai-sdk', findNewerNode) },
  { ...web, name: 'Types', step: checkTypes },
  { ...web, part: ['web', 'soak'], name: 'Demos', step: makeDemos },
  { ...web, name: 'Documentation', step: makeDocs },
  { ...web, name: 'Lighthouse', step: auditPages },
  { ...web, name: 'Browser tests', step: testInBrowser },
  { ...web, part: 'soak', name: 'Random calls', slow: true, step: makeRandomCalls }
]
