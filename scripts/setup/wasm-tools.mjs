// wasm-pack, and wasm-bindgen in exactly the crate's version.
//
// wasm-pack is downloaded, which takes seconds, if its makers publish a program for this machine
// whose sum is recorded. Otherwise, or if it cannot be reached, cargo compiles it, as it always
// compiles wasm-bindgen: no sums of its archives are recorded.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CARGO_HOME, lockedVersion } from '../paths.mjs'
import { capture, isExecutable, preferPath, runQuietly } from '../process.mjs'
import { isRecorded, unpack, WrongSum } from './download.mjs'
import { atLeast, versionIn } from './version.mjs'

/** The first wasm-pack that builds with a profile of the crate's own. */
const OLDEST_WASM_PACK = '0.13.1'
export const WASM_PACK = '0.15.0'

/** Each version has its own folder, because another project may need another one. */
const folderOf = (tool, version) => join(CARGO_HOME, `${tool}-${version}`)

/** The folders of all versions of a tool. */
const foldersOf = tool =>
  (existsSync(CARGO_HOME) ? readdirSync(CARGO_HOME) : [])
    .filter(name => name.startsWith(`${tool}-`))
    .map(name => join(CARGO_HOME, name, 'bin'))

/** The names of machines in the downloads. */
const MACHINES = {
  'linux x64': 'x86_64-unknown-linux-musl',
  'linux arm64': 'aarch64-unknown-linux-musl',
  'darwin x64': 'x86_64-apple-darwin',
  'darwin arm64': 'aarch64-apple-darwin'
}

/**
 * The setup's step for one tool. `accepts`: whether an installed version will do. `download`: the
 * address of the archive for a machine, if there is one. `crate`: the arguments with which cargo
 * compiles it.
 */
const toolStep = ({ tool, version, accepts, download, crate }) => ({
  name: tool,
  note: 'installing, some minutes where cargo compiles it',
  check: () => {
    const found = versionIn(capture(tool, ['--version']))
    if (found && accepts(found)) return found
    for (const bin of foldersOf(tool).filter(bin => isExecutable(join(bin, tool)))) {
      const installed = versionIn(capture(join(bin, tool), ['--version']))
      if (!installed || !accepts(installed)) continue
      preferPath(bin)
      return installed
    }
    return null
  },
  install: async () => {
    const folder = folderOf(tool, version())
    const log = `setup-${tool}`
    try {
      const machine = MACHINES[`${process.platform} ${process.arch}`]
      const address = machine && download?.(version(), machine)
      if (address && isRecorded(address)) {
        await unpack(address, join(folder, 'bin'), { log })
        if (versionIn(capture(join(folder, 'bin', tool), ['--version'])) === version()) return
      }
    } catch (error) {
      if (error instanceof WrongSum) throw error
      // Some machines reach nothing but package registries. Cargo can still compile it there.
    }
    rmSync(folder, { recursive: true, force: true })
    await cargoInstall([...crate, '--version', `=${version()}`, '--root', folder], log)
  },
  remedy: () => `run \`cargo install ${crate[0]} --version =${version()}\`.`
})

export const wasmPack = toolStep({
  tool: 'wasm-pack',
  version: () => WASM_PACK,
  accepts: found => atLeast(found, OLDEST_WASM_PACK),
  download: (version, machine) =>
    `https://github.com/wasm-bindgen/wasm-pack/releases/download/v${version}/wasm-pack-v${version}-${machine}.tar.gz`,
  crate: ['wasm-pack']
})

export const wasmBindgen = toolStep({
  tool: 'wasm-bindgen',
  version: () => lockedVersion('wasm-bindgen'),
  accepts: found => found === lockedVersion('wasm-bindgen'),
  // Without TLS: only the test runner needs it, another program of the same crate.
  crate: ['wasm-bindgen-cli', '--bin', 'wasm-bindgen', '--no-default-features']
})

/**
 * The profile that gets to a first build soonest. Unoptimised tools compile faster, and they run
 * for seconds only.
 */
const QUICKLY = { CARGO_PROFILE_DEV_DEBUG: 'false' }

const cargoInstall = async (args, log) => {
  const quickly = ['install', '--profile', 'dev']
  // Try the versions in the crate's lock file first. A registry that lags behind may lack one.
  try {
    await runQuietly('cargo', [...quickly, '--locked', ...args], { log, env: QUICKLY })
  } catch {
    await runQuietly('cargo', [...quickly, ...args], { log, env: QUICKLY })
  }
}
