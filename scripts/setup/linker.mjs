// The C linker, which rustc calls for every program; a fresh Debian has none.
import { find } from '../process.mjs'
import { aptCommand, aptInstall } from './apt.mjs'

const PACKAGES = ['gcc', 'libc6-dev']

export const linker = {
  name: 'C linker',
  check: () => (process.platform === 'win32' ? 'left to Rust' : find('cc')),
  install: () => aptInstall(...PACKAGES),
  remedy: () =>
    process.platform === 'darwin'
      ? 'run `xcode-select --install`.'
      : `run \`${aptCommand(...PACKAGES)}\`, or install your system's C compiler as \`cc\`.`
}
