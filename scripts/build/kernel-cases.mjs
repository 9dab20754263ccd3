// Compiles the cases of tests/kernels to WebAssembly, for tests/web/kernel-cases.mjs. They are no part of the package, whose
// scripts they import.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CARGO_TARGET, inRoot } from '../paths.mjs'
import { run } from '../process.mjs'
import { TARGET, wasmEnvironment } from '../setup/wasm-target.mjs'
import { wasmBindgen } from '../setup/wasm-tools.mjs'
import { fingerprint, isCurrent, note } from './fingerprint.mjs'

const CRATE = 'tritloom_kernel_cases'
/** The build is waited for, and the cases are not many. The profile is that of the native tests, whose tools it shares. */
const PROFILE = ['opt-level=1', 'debug=false'].flatMap(setting => ['--config', `profile.dev.${setting}`])
export const KERNEL_CASES = inRoot('target', 'kernel-cases')
const INPUTS = ['Cargo.toml', 'Cargo.lock', 'src', 'shaders', 'tests/kernels', 'tests/support', 'scripts/build/kernel-cases.mjs']

/** Builds them if anything has changed; needs what `setUp()` brings. */
export const buildKernelCases = () => {
  const print = fingerprint(INPUTS)
  if (isCurrent(KERNEL_CASES, print)) return
  run('cargo', ['build', '--quiet', '--package', CRATE, '--target', TARGET, ...PROFILE], { env: wasmEnvironment() ?? {} })
  // Another run may build them at the same time.
  const stage = `${KERNEL_CASES}-${process.pid}`
  mkdirSync(stage, { recursive: true })
  const wasm = join(CARGO_TARGET, TARGET, 'debug', `${CRATE}.wasm`)
  // Puts the one that the setup has installed in PATH, if a test runs by itself.
  wasmBindgen.check()
  run('wasm-bindgen', ['--target', 'web', '--no-typescript', '--out-dir', stage, '--out-name', 'kernel_cases', wasm])
  const script = join(stage, 'kernel_cases.js')
  writeFileSync(script, ofPackage(readFileSync(script, 'utf8')))
  note(stage, print)
  if (isCurrent(KERNEL_CASES, print)) return rmSync(stage, { recursive: true })
  if (existsSync(KERNEL_CASES)) rmSync(KERNEL_CASES, { recursive: true, force: true })
  renameSync(stage, KERNEL_CASES)
}

/** A script of wasm-bindgen that imports the package's scripts from pkg/. */
const ofPackage = script => script.replace(/^(import .* from ['"])\.\//gm, '$1../../pkg/')
