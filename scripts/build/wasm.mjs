// The crate to WebAssembly with its JavaScript: wasm-pack, then binaryen's wasm-opt.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot, ROOT } from '../paths.mjs'
import { nodeTool, run } from '../process.mjs'
import { wasmEnvironment } from '../setup/wasm-target.mjs'

/** What wasm-pack writes: here first, so that a failing build leaves the last pkg/ as it was. */
const STAGE = inRoot('target', 'wasm-pack')
const OPTIMISED = inRoot('target', 'wasm-opt')
export const WASM = 'ternlight_bg.wasm'
const GLUE = ['ternlight.js', 'ternlight.d.ts', `${WASM}.d.ts`]

/** Compiles; the files of the package that come of it, by name. */
export const buildWasm = () => {
  mkdirSync(STAGE, { recursive: true })
  run(
    'wasm-pack',
    ['build', '--target', 'web', '--profile', 'web', '--mode', 'no-install', '--no-pack', '--no-gitignore',
      '--out-name', 'ternlight', '--out-dir', STAGE, ROOT],
    { env: wasmEnvironment() ?? {} }
  )
  const files = Object.fromEntries(GLUE.map(name => [name, join(STAGE, name)]))
  return { ...files, [WASM]: optimised(join(STAGE, WASM)) }
}

/**
 * The smaller module; wasm-opt takes longer than the rest, so its answer is kept by what it was
 * made from.
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

/** What rustc and wasm-bindgen use; every browser with WebGPU has them all. */
const FEATURES = [
  'bulk-memory', 'multivalue', 'mutable-globals', 'nontrapping-float-to-int', 'reference-types', 'sign-ext'
].map(feature => `--enable-${feature}`)
