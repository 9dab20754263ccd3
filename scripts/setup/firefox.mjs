// Firefox for the tests, as people have it: an installed one, Debian's, or Mozilla's own.
import { mkdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { capture, find, isExecutable, runQuietly } from '../process.mjs'
import { aptCommand, aptInstall, canInstall } from './apt.mjs'
import { atLeast, versionIn } from './version.mjs'

/** The oldest release that the tests were run with. Older ones may lack WebGPU in workers. */
const OLDEST = '153'
const NAMES = ['firefox-esr', 'firefox']
const APPLICATION = '/Applications/Firefox.app/Contents/MacOS/firefox'

/** The names of machines in Mozilla's downloads. */
const MACHINES = { 'linux x64': 'linux64', 'linux arm64': 'linux64-aarch64' }
/** Where a download is unpacked. */
const folder = () => join(homedir(), '.cache', 'tritloom', 'firefox')

const versionOf = path => versionIn(capture(path, ['--version']))

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
  const machine = MACHINES[`${process.platform} ${process.arch}`]
  if (!machine) throw new Error('Mozilla has no archive for this machine.')
  const address = `https://download.mozilla.org/?product=firefox-esr-latest-ssl&os=${machine}&lang=en-US`
  rmSync(folder(), { recursive: true, force: true })
  mkdirSync(folder(), { recursive: true })
  const archive = join(folder(), 'archive.tar')
  const limits = ['--connect-timeout', '5', '--max-time', '300']
  await runQuietly('curl', [
    '--fail',
    '--silent',
    '--show-error',
    '--location',
    ...limits,
    '--output',
    archive,
    address
  ])
  await runQuietly('tar', ['-xf', archive, '--strip-components=1', '-C', folder()])
  rmSync(archive)
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
