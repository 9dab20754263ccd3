// Rust: a compiler that is new enough, the formatter and the linter.
import { join } from 'node:path'
import { CARGO_HOME, cargoField } from '../paths.mjs'
import { capture, find, isExecutable, preferPath, runQuietly } from '../process.mjs'
import { atLeast, versionIn } from './version.mjs'

const installed = () => {
  // A shell opened before rustup was installed does not have it in its PATH.
  const bin = join(CARGO_HOME, 'bin')
  if (!find('cargo') && isExecutable(join(bin, 'cargo'))) preferPath(bin)
  return versionIn(capture('rustc', ['--version']))
}

export const rust = {
  name: 'Rust',
  check: () => {
    const version = installed()
    return version && find('cargo') && atLeast(version, cargoField('rust-version')) ? version : null
  },
  note: 'rustup update stable',
  install: async () => {
    if (!find('rustup')) throw new Error('There is no rustup to install Rust with.')
    await runQuietly('rustup', ['update', 'stable', '--no-self-update'])
    if (capture('rustup', ['default']) === null) await runQuietly('rustup', ['default', 'stable'])
  },
  remedy: () => {
    const version = installed()
    const wanted = cargoField('rust-version')
    if (!version) {
      return `install it with
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y
(see https://rustup.rs), open a new shell and run this again.`
    }
    return `this is ${version}, and ${wanted} or newer is needed: run \`rustup update stable && rustup default stable\`.`
  }
}

export const rustComponents = {
  name: 'rustfmt and clippy',
  check: () => {
    const versions = ['fmt', 'clippy'].map(tool => versionIn(capture('cargo', [tool, '--version'])))
    return versions.includes(null) ? null : versions.join(' and ')
  },
  note: 'rustup component add',
  install: () => runQuietly('rustup', ['component', 'add', 'rustfmt', 'clippy']),
  remedy: () => 'run `rustup component add rustfmt clippy`.'
}
