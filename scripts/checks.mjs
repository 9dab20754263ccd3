// The checks of `npm test`, in order: what fails soonest comes first.
import { readdirSync } from 'node:fs'
import { buildPackage } from './build/pkg.mjs'
import { buildDemos, checkDemos } from './demos.mjs'
import { inRoot } from './paths.mjs'
import { capture, nodeTool, run } from './process.mjs'
import { findBrowser, swiftShader } from './setup/browser.mjs'
import { llvmpipe } from './setup/vulkan.mjs'
import { TARGET, wasmEnvironment } from './setup/wasm-target.mjs'

/** The test files that run on a GPU: once on each of the drivers. */
const ON_GPU = ['kernels', 'engine']

const testScripts = () => {
  const folder = inRoot('tests', 'scripts')
  const files = readdirSync(folder).filter(name => name.endsWith('.test.mjs'))
  run(process.execPath, ['--test', ...files.map(name => `${folder}/${name}`)])
}

const cargo = (...args) => run('cargo', args)

const formatted = () => cargo('fmt', '--check')

const lintNative = () => cargo('clippy', '--quiet', '--all-targets', '--', '-D', 'warnings')

const lintWasm = () => {
  const env = wasmEnvironment() ?? {}
  const args = ['--quiet', '--target', TARGET, '--lib']
  // Debian's Rust for the web comes without clippy; rustc's own lints then have to do.
  if (capture('cargo', ['clippy', '--version'], { env }) === null) {
    run('cargo', ['rustc', '--profile', 'check', ...args, '--', '-D', 'warnings'], { env })
    return 'no clippy'
  }
  run('cargo', ['clippy', ...args, '--', '-D', 'warnings'], { env })
}

/** Everything, the GPU tests on Mesa's llvmpipe where this is Linux and nobody chose another. */
const testNative = () => run('cargo', ['test'], { env: driver(llvmpipe()) })

const testOnSwiftShader = () => {
  if (process.platform !== 'linux') return 'skipped'
  const icd = swiftShader()
  if (!icd) throw new Error(`${findBrowser()} brings no SwiftShader (vk_swiftshader_icd.json); another Chromium does.`)
  run('cargo', ['test', ...ON_GPU.flatMap(name => ['--test', name])], { env: { VK_DRIVER_FILES: icd } })
}

const driver = icd => (process.env.VK_DRIVER_FILES || !icd ? {} : { VK_DRIVER_FILES: icd })

const inBrowser = () => run(nodeTool('playwright'), ['test'], { env: { CHROMIUM: findBrowser() } })

export const checks = [
  { part: 'scripts', name: 'Tests of the scripts', step: testScripts },
  { part: 'native', name: 'Format', step: formatted },
  { part: 'native', name: 'Clippy, native', step: lintNative },
  { part: 'native', name: 'Clippy, WebAssembly', step: lintWasm },
  { part: 'native', name: 'Native tests, llvmpipe', step: testNative },
  { part: 'native', name: 'Native GPU tests, SwiftShader', step: testOnSwiftShader },
  { part: 'web', name: 'Package', step: buildPackage },
  { part: 'web', name: 'Demos', step: () => (checkDemos(), buildDemos()) },
  { part: 'web', name: 'Browser tests', step: inBrowser }
]
