// A browser with WebGPU for the tests: an installed one, one that Playwright fetched, or Debian's.
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { find, isExecutable } from '../process.mjs'
import { aptCommand, aptInstall } from './apt.mjs'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
const APPLICATIONS = [
  'Chromium.app/Contents/MacOS/Chromium',
  'Google Chrome.app/Contents/MacOS/Google Chrome'
]

/** The path of the browser, or null. `CHROMIUM` in the environment decides where it is set. */
export const findBrowser = () => {
  const named = process.env.CHROMIUM
  if (named) return isExecutable(named) ? named : find(named)
  const candidates = [
    ...NAMES.map(find),
    ...APPLICATIONS.map(app => `/Applications/${app}`),
    ...ofPlaywright()
  ]
  return candidates.find(path => path && isExecutable(path)) ?? null
}

/**
 * The browsers that `playwright install chromium` has left, newest first. Playwright compares no
 * sums, so the setup does not run it.
 */
const ofPlaywright = () => {
  const caches = [
    process.env.PLAYWRIGHT_BROWSERS_PATH,
    join(homedir(), '.cache', 'ms-playwright'),
    join(homedir(), 'Library', 'Caches', 'ms-playwright')
  ].filter(path => path && existsSync(path))
  const inside = [
    'chrome-linux64/chrome',
    'chrome-linux/chrome',
    'chrome-mac/Chromium.app/Contents/MacOS/Chromium',
    'chrome-mac-arm64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing'
  ]
  return caches.flatMap(cache =>
    readdirSync(cache)
      .filter(name => /^chromium-\d+$/.test(name))
      .sort((a, b) => Number(b.slice(9)) - Number(a.slice(9)))
      .flatMap(name => inside.map(path => join(cache, name, path)))
  )
}

/** The manifest of SwiftShader, the Vulkan driver that comes with the browser, or null. */
export const swiftShader = () => {
  const path = findBrowser()
  if (!path) return null
  // Debian's /usr/bin/chromium is a script, and the driver is not beside it.
  const directories = [
    dirname(realpathSync(path)),
    '/usr/lib/chromium',
    '/usr/lib64/chromium-browser'
  ]
  return directories.map(dir => join(dir, 'vk_swiftshader_icd.json')).find(existsSync) ?? null
}

export const browser = {
  name: 'Chromium',
  check: findBrowser,
  install: async () => {
    if (process.env.CHROMIUM)
      throw new Error(`CHROMIUM names ${process.env.CHROMIUM}, which is not a program.`)
    await aptInstall('chromium')
  },
  remedy: () =>
    `run \`${aptCommand('chromium')}\` or \`npx playwright install chromium\`,
or set the variable CHROMIUM to the path of a Chromium or Chrome.`
}
