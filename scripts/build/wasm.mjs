// Compiles the crates to WebAssembly: the engine with its JavaScript by wasm-pack, the grammars by
// cargo, and then both by binaryen's wasm-opt.
import { createHash } from 'node:crypto'
import {
  existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync
} from 'node:fs'
import { join, resolve } from 'node:path'
import { CARGO_HOME, CARGO_TARGET, inRoot, ROOT } from '../paths.mjs'
import { capture, nodeTool, run } from '../process.mjs'
import { TARGET, threadsEnvironment, wasmEnvironment } from '../setup/wasm-target.mjs'
import { withoutHashes } from './imports.mjs'
import { standalone } from './standalone.mjs'

/** wasm-pack writes here first, so that a failing build leaves the last pkg/ as it was. */
export const STAGE = inRoot('target', 'wasm-pack')
const OPTIMISED = inRoot('target', 'wasm-opt')
export const WASM = 'tritloom_bg.wasm'
const SCRIPT = 'tritloom.js'
const GLUE = [SCRIPT, 'tritloom.d.ts', `${WASM}.d.ts`]

/** The module of grammars. It is beside the script that fetches it, for bundlers that copy both. */
export const GRAMMAR = 'crate/grammar.wasm'

/**
 * The modules that compute on the CPU: the crate's features, the features of WebAssembly by binaryen's names, and the
 * file. A page takes one: with relaxed SIMD where the browser has it, with threads where they can share memory.
 */
const CPU_MODULES = Object.entries({
  simd: { crate: ['cpu'], features: ['simd'] },
  relaxed: { crate: ['relaxed-simd'], features: ['simd', 'relaxed-simd'] },
  'simd-threads': { crate: ['threads'], features: ['simd', 'threads'] },
  'relaxed-threads': { crate: ['relaxed-simd', 'threads'], features: ['simd', 'relaxed-simd', 'threads'] }
}).map(([name, module]) => ({
  name, ...module, threads: module.crate.includes('threads'), file: `cpu/tritloom-${name}.wasm`
}))

/** The modules for the CPU that can be built here, and the names of the others, in words. */
export const cpuModules = () => {
  if (threadsEnvironment()) return { modules: CPU_MODULES }
  const [modules, others] = [false, true].map(threads => CPU_MODULES.filter(module => module.threads === threads))
  const names = others.map(({ name }) => name).join(' and ')
  const leftOut = `left out: ${names}, which need the sources of Rust's standard library`
  return { modules, leftOut }
}

/** Compiles the engine for the GPU; the paths of the package's files that this makes, by name. */
export const buildWasm = () => {
  const { glue, wasm } = pack(['webgpu'])
  const files = Object.fromEntries(GLUE.map(name => [name, join(glue, name)]))
  return { ...files, [WASM]: optimised('engine', wasm, []) }
}

/** The same for the CPU, as one of its modules. */
export const buildCpuModule = ({ name, crate, threads, features, file }) => {
  const { glue, wasm } = pack(crate, threads)
  const script = join(glue, `${name}.js`)
  writeFileSync(script, standalone(readFileSync(join(glue, 'tritloom.js'), 'utf8')))
  return { [file.replace('.wasm', '.js')]: script, [file]: optimised(name, wasm, features) }
}

/** Compiles the crate with features. The first one is its back end. Gives the paths of its script and its module. */
const pack = (features, threads = false) => {
  const glue = join(STAGE, features.join('-'))
  mkdirSync(glue, { recursive: true })
  const env = (threads ? threadsEnvironment() : wasmEnvironment()) ?? {}
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
  const flags = [...withoutOurPaths(env), ...(threads ? WITH_THREADS : [])]
  const ofCargo = ['--no-default-features', '--features', features.join(), '--config', rustflags(flags)]
  // The crates that it depends on are the same as for the GPU.
  if (features[0] !== 'webgpu') ofCargo.push('--config', 'profile.web.package.tritloom.opt-level=3')
  if (threads) ofCargo.push('-Zbuild-std=std,panic_abort')
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
  const config = ['--config', rustflags(withoutOurPaths(env))]
  run('cargo', ['rustc', '--quiet', ...options, '--target', TARGET, ...config], { env })
  return optimised('grammar', join(CARGO_TARGET, TARGET, 'web', 'tritloom_grammar.wasm'), [])
}

/**
 * The flags of rustc for memory that threads share. wasm-bindgen then makes each thread's stack and variables, which
 * needs the names that the linker has for these.
 */
const WITH_THREADS = [
  '-Ctarget-feature=+atomics,+bulk-memory,+mutable-globals',
  ...[
    'shared-memory', 'import-memory', `max-memory=${2 ** 32}`,
    'export=__wasm_init_tls', 'export=__tls_size', 'export=__tls_align', 'export=__tls_base', 'export=__heap_base'
  ].map(argument => `-Clink-arg=--${argument}`)
]

const rustflags = flags => `target.${TARGET}.rustflags=${JSON.stringify(flags)}`

/** The flags with which rustc leaves this machine's paths out of panic messages. */
const withoutOurPaths = env => {
  const sysroot = capture('rustc', ['--print', 'sysroot'], { env })
  const names = {
    [resolve(ROOT)]: 'tritloom',
    [CARGO_HOME]: 'cargo',
    ...(sysroot && { [sysroot]: 'rust' })
  }
  return Object.entries(names).map(([path, name]) => `--remap-path-prefix=${path}=${name}`)
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
