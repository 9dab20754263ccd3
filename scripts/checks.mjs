// The checks of `npm test`, in order: what fails soonest comes first.
//
// A check's `step` throws where it fails. It passes what test runners print to `hear`, to be
// counted, and may return a note for the summary.
import { readdirSync } from 'node:fs'
import { buildPackage } from './build/pkg.mjs'
import { buildDemos, checkDemos } from './demos.mjs'
import { inRoot } from './paths.mjs'
import { capture, nodeTool, run, runHearing } from './process.mjs'
import { findBrowser, swiftShader } from './setup/browser.mjs'
import { llvmpipe } from './setup/vulkan.mjs'
import { TARGET, wasmEnvironment } from './setup/wasm-target.mjs'

/** The test files that run on a GPU: once on each of the drivers. */
const ON_GPU = ['kernels', 'engine']

const testScripts = hear => {
  const folder = inRoot('tests', 'scripts')
  const files = readdirSync(folder).filter(name => name.endsWith('.test.mjs'))
  return runHearing(process.execPath, ['--test', '--test-reporter=spec', ...files.map(name => `${folder}/${name}`)], hear)
}

const checkFormat = () => run('cargo', ['fmt', '--check'])

const lintNative = () => run('cargo', ['clippy', '--quiet', '--all-targets', '--', '-D', 'warnings'])

const lintWasm = () => {
  const env = wasmEnvironment() ?? {}
  const args = ['--quiet', '--target', TARGET, '--lib']
  const hasClippy = capture('cargo', ['clippy', '--version'], { env }) !== null
  if (hasClippy) return run('cargo', ['clippy', ...args, '--', '-D', 'warnings'], { env })
  // Debian's Rust for the web comes without clippy; the compiler's own lints have to do.
  run('cargo', ['rustc', '--profile', 'check', ...args, '--', '-D', 'warnings'], { env })
  return "rustc's lints, no clippy"
}

/** Everything; what needs a GPU runs on Mesa's llvmpipe, where this is Linux and nobody chose another. */
const testNative = hear => {
  const icd = process.env.VK_DRIVER_FILES || llvmpipe()
  return runHearing('cargo', ['test'], hear, { env: icd ? { VK_DRIVER_FILES: icd } : {} })
}

/** Each target for a minute; `cargo test` alone tries them for a second. */
const fuzz = hear => {
  const FUZZ_SECONDS = process.env.FUZZ_SECONDS ?? '60'
  return runHearing('cargo', ['test', '--test', 'fuzz', '--', '--nocapture'], hear, { env: { FUZZ_SECONDS } })
}

const testOnSwiftShader = async hear => {
  if (process.platform !== 'linux') return 'left out: not Linux'
  const icd = swiftShader()
  if (!icd) throw new Error(`${findBrowser()} brings no SwiftShader (vk_swiftshader_icd.json); Debian's Chromium does.`)
  const binaries = ON_GPU.flatMap(name => ['--test', name])
  await runHearing('cargo', ['test', ...binaries], hear, { env: { VK_DRIVER_FILES: icd } })
}

const testInBrowser = hear => {
  // Ports of this run's own: a server that another run has left behind is in no one's way.
  const PORT = process.env.PORT ?? String(20_000 + process.pid % 20_000)
  return runHearing(nodeTool('playwright'), ['test'], hear, { env: { CHROMIUM: findBrowser(), PORT } })
}

export const checks = [
  { part: 'scripts', name: 'Tests of the scripts', step: testScripts },
  { part: 'native', name: 'Format', step: checkFormat },
  { part: 'native', name: 'Clippy, native', step: lintNative },
  { part: 'native', name: 'Clippy, WebAssembly', step: lintWasm },
  { part: 'native', name: 'Native tests, llvmpipe', step: testNative },
  { part: 'native', name: 'GPU tests, SwiftShader', step: testOnSwiftShader },
  { part: 'native', name: 'Fuzzing', step: fuzz },
  { part: 'web', name: 'Package', step: buildPackage },
  { part: 'web', name: 'Demos', step: () => (checkDemos(), buildDemos()) },
  { part: 'web', name: 'Browser tests', step: testInBrowser }
]
