// Debian's package manager, where it may be used.
import { find, runQuietly } from '../process.mjs'

/** Whether packages can be installed without asking anyone. */
export const canInstall = () => process.getuid?.() === 0 && find('apt-get') !== null

let updated = false

/** Installs packages. A fresh image has no package lists, so they are fetched once a run. */
export const aptInstall = async (...packages) => {
  if (!canInstall())
    throw new Error('Nothing was installed: that needs root on a machine with apt-get.')
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  if (!updated) await runQuietly('apt-get', ['update'], { env })
  updated = true
  await runQuietly('apt-get', ['install', '-y', '--no-install-recommends', ...packages], { env })
}

/** The command a person would type instead. */
export const aptCommand = (...packages) =>
  `sudo apt-get update && sudo apt-get install ${packages.join(' ')}`
