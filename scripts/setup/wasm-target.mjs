// Installs Rust's standard library for WebAssembly with rustup. Where rustup cannot download,
// Debian's packages are used: its compiler, and the library built from its sources.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CARGO_TARGET } from '../paths.mjs'
import { capture, find, isExecutable, runQuietly } from '../process.mjs'
import { aptInstall, canInstall } from './apt.mjs'

export const TARGET = 'wasm32-unknown-unknown'
const DEBIAN = ['rustc-web', 'cargo-web', 'rust-web-src']
/** The name under which rustup knows Debian's compiler, `/usr`. */
const LINKED = 'distro'

/**
 * The environment variables with which cargo builds for WebAssembly, or null if no toolchain can.
 * Tries the toolchain in use, then Debian's, which is used for this target alone.
 */
export const wasmEnvironment = () => {
  for (const env of [{}, { RUSTUP_TOOLCHAIN: LINKED }]) {
    if (compiles(env)) return { ...env, ...linkerFor(env) }
  }
  return null
}

/**
 * The same for a module with threads, or null if the sources of the compiler's library or the crates that these need are
 * not here: the library has to be built for that. Cargo builds in a folder of its own then, because it would take that
 * library for all else.
 */
export const threadsEnvironment = () => {
  const env = wasmEnvironment()
  if (!env || !existsSync(lockOfLibrary(env))) return null
  const unstable = { ...env, RUSTC_BOOTSTRAP: '1' }
  if (capture('cargo', [...fetchOfLibrary(env), '--offline'], { env: unstable }) === null) return null
  return { ...unstable, CARGO_TARGET_DIR: join(CARGO_TARGET, 'threads') }
}

const lockOfLibrary = env =>
  join(capture('rustc', ['--print', 'sysroot'], { env }) ?? '', 'lib', 'rustlib', 'src', 'rust', 'library', 'Cargo.lock')

/** Cargo's arguments to fetch the crates of the library. */
const fetchOfLibrary = env =>
  ['fetch', '--locked', '--target', TARGET, '--manifest-path', lockOfLibrary(env).replace(/lock$/, 'toml')]

/**
 * Whether a line can be compiled for the target. That the library is there is not enough: it may be
 * another compiler's.
 */
const compiles = env =>
  capture('rustc', ['--target', TARGET, '--crate-type', 'lib', '--emit', 'metadata=-', '-'], {
    env,
    input: 'pub fn empty() -> String { String::new() }'
  }) !== null

/** Debian's rustc may lack a linker for WebAssembly. That of another toolchain will do. */
const linkerFor = env => {
  const own = rustLld(capture('rustc', ['--print', 'sysroot'], { env }))
  if (own) return {}
  const sysroots = (capture('rustup', ['toolchain', 'list', '--verbose']) ?? '')
    .split('\n')
    .map(line => line.trim().split(/\s+/).at(-1))
  const other = find('rust-lld') ?? sysroots.map(rustLld).find(Boolean) ?? find('wasm-ld')
  return other ? { CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: other } : {}
}

const rustLld = sysroot => {
  const host = /^host: (.+)$/m.exec(capture('rustc', ['-vV']) ?? '')?.[1]
  const path = join(sysroot ?? '', 'lib', 'rustlib', host ?? '', 'bin', 'rust-lld')
  return sysroot && isExecutable(path) ? path : null
}

export const wasmTarget = {
  name: 'WebAssembly target',
  check: () => {
    const env = wasmEnvironment()
    if (!env) return null
    return env.RUSTUP_TOOLCHAIN ? "Debian's Rust, for this target alone" : TARGET
  },
  note: 'rustup target add',
  install: async () => {
    try {
      await runQuietly('rustup', ['target', 'add', TARGET])
    } catch (error) {
      if (!canInstall()) throw error
      await fromDebian()
    }
  },
  remedy:
    () => `run \`rustup target add ${TARGET}\`. Where that cannot download, run this script as root on
Debian: it then installs ${DEBIAN.join(', ')} and builds the target from them.`
}

/** The sources of the standard library. The modules with threads need a build of it of their own. */
export const librarySources = {
  name: "Rust's sources",
  check: () => (threadsEnvironment() ? 'for modules with threads' : null),
  note: 'rustup component add',
  install: async () => {
    const env = wasmEnvironment() ?? {}
    if (!existsSync(lockOfLibrary(env))) await runQuietly('rustup', ['component', 'add', 'rust-src'])
    await runQuietly('cargo', fetchOfLibrary(env), { env: { ...env, RUSTC_BOOTSTRAP: '1' } })
  },
  remedy: () => 'run `rustup component add rust-src`, and this script again where crates can be downloaded.',
  without: 'the package has no modules with threads'
}

const fromDebian = async () => {
  await aptInstall(...DEBIAN)
  const env = { RUSTUP_TOOLCHAIN: LINKED }
  if (find('rustup')) await runQuietly('rustup', ['toolchain', 'link', LINKED, '/usr'])
  if (!compiles(env)) await buildStandardLibrary(env)
  // lld is large, so it is installed only if nothing else can link.
  if (!rustLld('/usr') && Object.keys(linkerFor(env)).length === 0) await aptInstall('lld')
}

/** Builds std with an empty crate and copies it to where rustc looks for it. */
const buildStandardLibrary = async env => {
  const crate = mkdtempSync(join(tmpdir(), 'tritloom-std-'))
  try {
    writeFileSync(
      join(crate, 'Cargo.toml'),
      '[package]\nname = "empty"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
    )
    writeFileSync(join(crate, 'lib.rs'), '')
    const std = '-Zbuild-std=std,panic_abort,panic_unwind,proc_macro'
    await runQuietly(
      'cargo',
      ['build', '--release', std, '--target', TARGET, '--target-dir', 'target'],
      {
        cwd: crate,
        // `lto` needs bitcode in the library. RUSTC_BOOTSTRAP allows build-std, an unstable
        // option.
        env: { ...env, RUSTC_BOOTSTRAP: '1', RUSTFLAGS: '-Cembed-bitcode=yes' }
      }
    )
    const from = join(crate, 'target', TARGET, 'release', 'deps')
    const to = join('/usr/lib/rustlib', TARGET, 'lib')
    rmSync(to, { recursive: true, force: true })
    mkdirSync(to, { recursive: true })
    const libraries = readdirSync(from).filter(
      name => name.endsWith('.rlib') && !name.startsWith('libempty-')
    )
    for (const name of libraries) cpSync(join(from, name), join(to, name))
    // Cargo does not notice that the library is another one, and would mix old output with new.
    rmSync(join(CARGO_TARGET, TARGET), { recursive: true, force: true })
  } finally {
    rmSync(crate, { recursive: true, force: true })
  }
}
