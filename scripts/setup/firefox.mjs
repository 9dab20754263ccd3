// Firefox for the tests and the benchmark, as people have it: an installed one, Debian's, or Mozilla's own.
import { rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { capture, find, isExecutable, runQuietly } from '../process.mjs'
import { aptCommand, aptInstall, canInstall } from './apt.mjs'
import { unpack } from './download.mjs'
import { atLeast, versionIn } from './version.mjs'

/** The oldest release that the tests were run with. Older ones may lack WebGPU in workers. */
const OLDEST = '153'
const NAMES = ['firefox-esr', 'firefox']
const APPLICATION = '/Applications/Firefox.app/Contents/MacOS/firefox'

/** Mozilla's archive for the one machine whose sum is recorded. */
const MACHINE = 'linux x64'
const ARCHIVE =
  'https://archive.mozilla.org/pub/firefox/releases/153.0/linux-x86_64/en-US/firefox-153.0.tar.xz'
/** Where a download is unpacked. */
const folder = () => join(homedir(), '.cache', 'tritloom', 'firefox')

const versionOf = path => versionIn(capture(path, ['--version']))

/** WebGPU, also in workers and on drivers that Firefox does not know; and no pages of its own. */
const PREFERENCES = `
user_pref('dom.webgpu.enabled', true);
user_pref('dom.webgpu.workers.enabled', true);
user_pref('gfx.webgpu.ignore-blocklist', true);
user_pref('browser.aboutwelcome.enabled', false);
user_pref('datareporting.policy.dataSubmissionEnabled', false);
`

/** Makes a profile in `folder`, and gives the flags with which Firefox starts in it. */
export const firefoxFlags = folder => {
  writeFileSync(join(folder, 'user.js'), PREFERENCES)
  return ['--headless', '--no-remote', '--profile', folder]
}

/** The path of a Firefox that is new enough, or null. `FIREFOX` in the environment decides. */
export const findFirefox = () => {
  const named = process.env.FIREFOX
  const candidates = named
    ? [isExecutable(named) ? named : find(named)]
    : [...NAMES.map(find), APPLICATION, join(folder(), 'firefox')]
  return candidates.find(path => path && isExecutable(path) && isNewEnough(path)) ?? null
}

const isNewEnough = path => {
  const version = versionOf(path)
  return version !== null && atLeast(version, OLDEST)
}

const download = async () => {
  if (`${process.platform} ${process.arch}` !== MACHINE)
    throw new Error('The setup has no archive of Firefox for this machine.')
  rmSync(folder(), { recursive: true, force: true })
  await unpack(ARCHIVE, folder(), { seconds: 300 })
}

export const firefox = {
  name: 'Firefox',
  check: () => {
    const path = findFirefox()
    return path && `${path}, ${versionOf(path)}`
  },
  without: 'the tests in Firefox are skipped',
  install: async () => {
    if (process.env.FIREFOX)
      throw new Error(`FIREFOX names ${process.env.FIREFOX}, which is no Firefox from ${OLDEST} on.`)
    try {
      if (canInstall()) await aptInstall('firefox-esr')
    } catch {
      // Not every system with apt-get has it; Mozilla has.
    }
    if (!findFirefox()) await download()
  },
  remedy: () =>
    `run \`${aptCommand('firefox-esr')}\` or install it from mozilla.org,
or set the variable FIREFOX to the path of a Firefox ${OLDEST} or newer.`
}
