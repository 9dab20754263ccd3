// Node itself, a newer one for some tests, and the packages of package-lock.json.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot } from '../paths.mjs'
import { capture, isExecutable, npm, runQuietly } from '../process.mjs'
import { atLeast, versionIn } from './version.mjs'

const wanted = () =>
  JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).engines.node.replace('>=', '')

export const nodeVersion = {
  name: 'Node',
  check: () => (atLeast(process.versions.node, wanted()) ? process.versions.node : null),
  remedy: () =>
    `this is ${process.versions.node}; install ${wanted()} or newer, from your system or from nodejs.org.`
}

/** Names of packages whose installed version differs from the lock. */
export const differing = (lock, installed) =>
  Object.entries(lock.packages)
    .filter(([path, entry]) => {
      const there = installed.packages[path]
      // The lock names the binaries of every platform; npm installs this one's.
      return path && (there ? there.version !== entry.version : !entry.optional)
    })
    .map(([path]) => path)

const read = path => JSON.parse(readFileSync(path, 'utf8'))

export const nodePackages = {
  name: 'Node packages',
  check: () => {
    const noted = inRoot('node_modules', '.package-lock.json')
    if (!existsSync(noted)) return null
    const installed = read(noted)
    if (differing(read(inRoot('package-lock.json')), installed).length > 0) return null
    if (!Object.keys(installed.packages).every(path => existsSync(inRoot(path)))) return null
    return `${Object.keys(installed.packages).length} as locked`
  },
  note: 'npm ci',
  install: () => {
    const [command, ...args] = npm()
    return runQuietly(command, [...args, 'ci', '--include=dev', '--no-audit', '--no-fund'], {
      log: 'setup-npm'
    })
  },
  remedy: () => 'run `npm ci` here and see what it says; it needs to reach your npm registry.'
}

/** The npm package `ai` needs this Node, the project an older one. */
const NEWER = '22'
/** Where a newer Node comes from npm. */
const NEWER_HOME = inRoot('tests', 'ai-sdk')
/** The packages of npm that are Node for one kind of machine. */
const newerPackage = () => `node-${process.platform}-${process.arch}`

/** The path of a Node for the npm package `ai`: this one, if it is new enough, or else npm's; or null. */
export const findNewerNode = () => {
  if (atLeast(process.versions.node, NEWER)) return process.execPath
  const own = join(NEWER_HOME, 'node_modules', newerPackage(), 'bin', 'node')
  return isExecutable(own) ? own : null
}

export const newerNode = {
  name: `Node ${NEWER}`,
  check: () => {
    const path = findNewerNode()
    return path && `${path}, ${versionIn(capture(path, ['--version']))}`
  },
  note: 'npm ci',
  without: 'the tests with the AI SDK are skipped',
  install: () => {
    const [command, ...args] = npm()
    return runQuietly(command, [...args, 'ci', '--no-audit', '--no-fund'], { cwd: NEWER_HOME, log: 'setup-node' })
  },
  remedy: () => `run this with Node ${NEWER} or newer, from your system or from nodejs.org.`
}
