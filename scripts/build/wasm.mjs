// Compiles the crates to WebAssembly: the engine with its JavaScript by wasm-pack, the grammars by
// cargo, and then both by binaryen's wasm-opt.
import { createHash } from 'node:crypto'
import {
  existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync
} from 'node:fs'
import { join, resolve } from 'node:path'
import { CARGO_HOME, CARGO_TARGET, inRoot, ROOT } from '../paths.mjs'
import { capture, nodeTool, run } from '../process.mjs'
import { TARGET, wasmEnvironment } from '../setup/wasm-target.mjs'
import { withoutHashes } from './imports.mjs'
import { standalone } from './standalone.mjs'

/** wasm-pack writes here first, so that a failing build leaves the last pkg/ as it was. */
const STAGE = inRoot('target', 'wasm-pack')
const OPTIMISED = inRoot('target', 'wasm-opt')
export const WASM = 'tritloom_bg.wasm'
const SCRIPT = 'tritloom.js'
const GLUE = [SCRIPT, 'tritloom.d.ts', `${WASM}.d.ts`]

/** The module of grammars. It is beside the script that fetches it, for bundlers that copy both. */
export const GRAMMAR = 'crate/grammar.wasm'

/**
 * The modules that compute on the CPU: the crate's feature, the features of WebAssembly by binaryen's names, and the
 * file.
 */
export const CPU_MODULES = Object.entries({
  simd: { backend: 'cpu', features: ['simd'] },
  relaxed: { backend: 'relaxed-simd', features: ['simd', 'relaxed-simd'] }
}).map(([name, module]) => ({ name, ...module, file: `cpu/tritloom-${name}.wasm` }))

/** Compiles the engine for the GPU; the paths of the package's files that this makes, by name. */
export const buildWasm = () => {
  const { glue, wasm } = pack('webgpu')
  const files = Object.fromEntries(GLUE.map(name => [name, join(glue, name)]))
  return { ...files, [WASM]: optimised('engine', wasm, []) }
}

/** The same for the CPU, as one of its modules. */
export const buildCpuModule = ({ name, backend, features, file }) => {
  const { glue, wasm } = pack(backend)
  const script = join(glue, `${name}.js`)
  writeFileSync(script, standalone(readFileSync(join(glue, 'tritloom.js'), 'utf8')))
  return { [file.replace('.wasm', '.js')]: script, [file]: optimised(name, wasm, features) }
}

/** Compiles the crate with a back end; where its script and its module lie. */
const pack = backend => {
  const glue = join(STAGE, backend)
  mkdirSync(glue, { recursive: true })
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
    glue
  ]
  const ofCargo = ['--no-default-features', '--features', backend, '--config', withoutOurPaths(env)]
  // The crates that it depends on are the same as for the GPU.
  if (backend !== 'webgpu') ofCargo.push('--config', 'profile.web.package.tritloom.opt-level=3')
  run('wasm-pack', ['build', ...options, ROOT, '--', ...ofCargo], { env })
  shortenNames(join(glue, WASM), join(glue, SCRIPT))
  return { glue, wasm: join(glue, WASM) }
}

/** Takes the hashes out of the names by which a module and its script know each other. */
const shortenNames = (wasm, script) => {
  const shorter = withoutHashes(readFileSync(wasm), readFileSync(script, 'utf8'))
  writeFileSync(wasm, shorter.wasm)
  writeFileSync(script, shorter.script)
}

/** Compiles the grammars, which have no JavaScript but functions of numbers; the path of the module. */
export const buildGrammar = () => {
  const env = wasmEnvironment() ?? {}
  const options = ['--package', 'tritloom_grammar', '--lib', '--crate-type', 'cdylib', '--profile', 'web']
  const config = ['--config', withoutOurPaths(env)]
  run('cargo', ['rustc', '--quiet', ...options, '--target', TARGET, ...config], { env })
  return optimised('grammar', join(CARGO_TARGET, TARGET, 'web', 'tritloom_grammar.wasm'), [])
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
const optimised = (name, wasm, features) => {
  const hash = createHash('sha256').update(readFileSync(wasm)).digest('hex').slice(0, 16)
  const done = join(OPTIMISED, `${name}-${hash}.wasm`)
  if (existsSync(done)) return done
  mkdirSync(OPTIMISED, { recursive: true })
  for (const old of readdirSync(OPTIMISED)) if (old.startsWith(`${name}-`)) rmSync(join(OPTIMISED, old))
  const unfinished = `${done}.part`
  const enabled = [...FEATURES, ...features].map(feature => `--enable-${feature}`)
  run(nodeTool('wasm-opt'), ['-Os', ...enabled, wasm, '-o', unfinished])
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
]
