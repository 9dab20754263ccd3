// WebKitGTK for the tests: the engine of Safari, in the small browser that comes with it, on a virtual screen.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { capture, find, isExecutable } from '../process.mjs'
import { aptCommand, aptInstall } from './apt.mjs'
import { atLeast, versionIn } from './version.mjs'

/** The oldest release that the tests were run with. */
const OLDEST = '2.50'
const PACKAGES = ['libwebkit2gtk-4.1-0', 'xvfb', 'xauth']
const BROWSERS = ['webkitgtk-6.0/MiniBrowser', 'webkit2gtk-4.1/MiniBrowser']
/** Where systems have the programs of their libraries. */
const LIBRARIES = ['/usr/lib', '/usr/libexec', '/usr/lib64']

const candidates = () => {
  const named = process.env.WEBKIT
  if (named) return [named]
  const folders = LIBRARIES.filter(existsSync).flatMap(folder => [
    folder,
    // Debian has a folder for each kind of machine.
    ...readdirSync(folder).filter(name => name.includes('-linux-')).map(name => join(folder, name))
  ])
  return folders.flatMap(folder => BROWSERS.map(name => join(folder, name)))
}

/** Its version, or null. It needs a screen even to tell it. */
const versionOf = path => versionIn(capture('xvfb-run', ['--auto-servernum', path, '--version']))

/** The path of a browser that is new enough, or null. `WEBKIT` in the environment decides. */
export const findWebKit = () => {
  if (process.platform !== 'linux' || !find('Xvfb') || !find('xvfb-run')) return null
  return candidates().find(path => isExecutable(path) && isNewEnough(path)) ?? null
}

const isNewEnough = path => {
  const version = versionOf(path)
  return version !== null && atLeast(version, OLDEST)
}

/**
 * Starts the browser with its own files in `folder` and a tab for each of `pages`. Resolves to its processes, the
 * screen first.
 * @param {string} path
 * @param {string} folder
 * @param {string[]} pages
 * @returns {Promise<import('node:child_process').ChildProcess[]>}
 */
export const startWebKit = async (path, folder, pages) => {
  // It writes the number of its screen to the last of these streams.
  const screen = spawn('Xvfb', ['-displayfd', '3', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe']
  })
  const [number] = await Promise.race([once(screen.stdio[3], 'data'), once(screen, 'exit')])
  if (screen.exitCode !== null) throw new Error(`Xvfb ended with ${number}`)
  const browser = spawn(path, pages, {
    env: {
      ...process.env,
      DISPLAY: `:${String(number).trim()}`,
      GDK_BACKEND: 'x11',
      XDG_CACHE_HOME: join(folder, 'cache'),
      XDG_CONFIG_HOME: join(folder, 'config'),
      XDG_DATA_HOME: join(folder, 'data')
    },
    stdio: 'ignore'
  })
  return [screen, browser]
}

export const webKit = {
  name: 'WebKitGTK',
  check: () => {
    if (process.platform !== 'linux') return 'not Linux: there is none'
    const path = findWebKit()
    return path && `${path}, ${versionOf(path)}`
  },
  without: 'the tests in WebKit are skipped',
  install: async () => {
    if (process.env.WEBKIT)
      throw new Error(`WEBKIT names ${process.env.WEBKIT}, which is no WebKitGTK from ${OLDEST} on.`)
    await aptInstall(...PACKAGES)
  },
  remedy: () =>
    `run \`${aptCommand(...PACKAGES)}\`,
or set the variable WEBKIT to the path of a MiniBrowser of WebKitGTK ${OLDEST} or newer.`
}
