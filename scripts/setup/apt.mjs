// Debian's package manager, where it may be used.
import { find, runQuietly } from '../process.mjs'

/** Whether packages can be installed without asking anyone. */
export const canInstall = () => process.getuid?.() === 0 && find('apt-get') !== null

let updated = false

/** Installs packages; the lists are fetched once a run, for a fresh image has none. */
export const aptInstall = (...packages) => {
  if (!canInstall()) throw new Error('Not root on a machine with apt-get, so nothing was installed.')
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  if (!updated) runQuietly('apt-get', ['update'], { env })
  updated = true
  runQuietly('apt-get', ['install', '-y', '--no-install-recommends', ...packages], { env })
}

/** The command a person would type instead. */
export const aptCommand = (...packages) => `sudo apt-get update && sudo apt-get install ${packages.join(' ')}`
