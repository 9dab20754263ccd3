// Compiles the crate to WebAssembly with its JavaScript: wasm-pack, then binaryen's wasm-opt.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CARGO_HOME, inRoot, ROOT } from '../paths.mjs'
import { capture, nodeTool, run } from '../process.mjs'
import { TARGET, wasmEnvironment } from '../setup/wasm-target.mjs'

/** wasm-pack writes here first, so that a failing build leaves the last pkg/ as it was. */
const STAGE = inRoot('target', 'wasm-pack')
const OPTIMISED = inRoot('target', 'wasm-opt')
export const WASM = 'tritloom_bg.wasm'
const GLUE = ['tritloom.js', 'tritloom.d.ts', `${WASM}.d.ts`]

/** Compiles the crate; the paths of the package's files that this makes, by name. */
export const buildWasm = () => {
  mkdirSync(STAGE, { recursive: true })
  const env = wasmEnvironment() ?? {}
  const options = [
    '--target',
    'web',
    '--profile',
    'web',
    '--mode',
    'no-install',
    '--no-pack',
    '--out-name',
    'tritloom',
    '--out-dir',
    STAGE
  ]
  run('wasm-pack', ['build', ...options, ROOT, '--', '--config', withoutOurPaths(env)], { env })
  const files = Object.fromEntries(GLUE.map(name => [name, join(STAGE, name)]))
  return { ...files, [WASM]: optimised(join(STAGE, WASM)) }
}

/** The setting with which rustc leaves this machine's paths out of panic messages. */
const withoutOurPaths = env => {
  const sysroot = capture('rustc', ['--print', 'sysroot'], { env })
  const names = {
    [resolve(ROOT)]: 'tritloom',
    [CARGO_HOME]: 'cargo',
    ...(sysroot && { [sysroot]: 'rust' })
  }
  const flags = Object.entries(names).map(([path, name]) => `--remap-path-prefix=${path}=${name}`)
  return `target.${TARGET}.rustflags=${JSON.stringify(flags)}`
}

/**
 * The module after wasm-opt. That takes longer than the other steps, so its result is kept under
 * the hash of its input.
 */
const optimised = wasm => {
  const hash = createHash('sha256').update(readFileSync(wasm)).digest('hex').slice(0, 16)
  const done = join(OPTIMISED, `${hash}.wasm`)
  if (existsSync(done)) return done
  rmSync(OPTIMISED, { recursive: true, force: true })
  mkdirSync(OPTIMISED, { recursive: true })
  const unfinished = `${done}.part`
  run(nodeTool('wasm-opt'), ['-Os', ...FEATURES, wasm, '-o', unfinished])
  renameSync(unfinished, done)
  return done
}

/** The features that rustc and wasm-bindgen use. Every browser with WebGPU has them all. */
const FEATURES = [
  'bulk-memory',
  'multivalue',
  'mutable-globals',
  'nontrapping-float-to-int',
  'reference-types',
  'sign-ext'
].map(feature => `--enable-${feature}`)
