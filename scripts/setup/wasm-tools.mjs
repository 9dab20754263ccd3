// wasm-pack, and the wasm-bindgen that fits the crate's: the two must be of one version.
import { join } from 'node:path'
import { CARGO_HOME, lockedVersion } from '../paths.mjs'
import { capture, isExecutable, preferPath, runQuietly } from '../process.mjs'
import { atLeast, versionIn } from './version.mjs'

/** The first wasm-pack that builds with a profile of the crate's own. */
const WASM_PACK = '0.13.1'

export const wasmPack = {
  name: 'wasm-pack',
  check: () => {
    const version = versionIn(capture('wasm-pack', ['--version']))
    return version && atLeast(version, WASM_PACK) ? version : null
  },
  note: 'cargo install, some minutes, once',
  install: () => cargoInstall('wasm-pack'),
  remedy: () => 'run `cargo install wasm-pack`.'
}

/** Of its own, since another project on this machine may need another version. */
const toolRoot = version => join(CARGO_HOME, `wasm-bindgen-${version}`)

export const wasmBindgen = {
  name: 'wasm-bindgen',
  check: () => {
    const version = lockedVersion('wasm-bindgen')
    if (versionIn(capture('wasm-bindgen', ['--version'])) === version) return version
    const bin = join(toolRoot(version), 'bin')
    if (!isExecutable(join(bin, 'wasm-bindgen'))) return null
    preferPath(bin)
    return version
  },
  note: 'cargo install, some minutes, once',
  install: () => {
    const version = lockedVersion('wasm-bindgen')
    cargoInstall('wasm-bindgen-cli', '--version', `=${version}`, '--root', toolRoot(version))
  },
  remedy: () => `run \`cargo install wasm-bindgen-cli --version =${lockedVersion('wasm-bindgen')}\`.`
}

const cargoInstall = (...args) => {
  // What the author tested comes first; a registry that lags behind may lack one of those versions.
  try {
    runQuietly('cargo', ['install', '--locked', ...args])
  } catch {
    runQuietly('cargo', ['install', ...args])
  }
}
