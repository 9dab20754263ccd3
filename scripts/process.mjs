// Running other programs.
import { spawn, spawnSync } from 'node:child_process'
import { accessSync, closeSync, constants, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { inRoot, ROOT } from './paths.mjs'
import { Stop } from './report.mjs'

/** What an installer printed goes here, so that a step stays one line. */
export const LOG = inRoot('target', 'setup.log')

/** The full path of a program, or null; looks in PATH, as a shell does. */
export const find = name => {
  for (const dir of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(dir, name)
    if (dir && isExecutable(path)) return path
  }
  return null
}

export const isExecutable = path => {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Puts a directory first in PATH, for this process and what it starts. */
export const preferPath = dir => {
  const rest = (process.env.PATH ?? '').split(delimiter).filter(other => other !== dir)
  process.env.PATH = [dir, ...rest].join(delimiter)
}

/** What a program prints, or null where it is missing or fails. */
export const capture = (command, args, { env = {}, input } = {}) => {
  const result = spawnSync(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    input: input ?? '',
    encoding: 'utf8'
  })
  return result.status === 0 ? result.stdout.trim() : null
}

/** Runs a program in the open; throws where it fails. */
export const run = (command, args, { env = {}, cwd = ROOT } = {}) => {
  const result = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit']
  })
  check(command, args, result)
}

/**
 * Runs a program in the open, and gives `hear` what it prints on its standard output; rejects
 * where it fails.
 */
export const runHearing = async (command, args, hear, { env = {} } = {}) => {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  child.stdout.setEncoding('utf8').on('data', text => {
    process.stdout.write(text)
    hear(text)
  })
  const result = await new Promise(resolve => {
    child.on('error', error => resolve({ error }))
    child.on('close', (status, signal) => resolve({ status, signal }))
  })
  check(command, args, result)
}

/** Runs an installer, its words into the log; throws with the last of them where it fails. */
export const runQuietly = (command, args, { env = {}, cwd = ROOT } = {}) => {
  mkdirSync(dirname(LOG), { recursive: true })
  const log = openSync(LOG, 'w')
  const result = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', log, log]
  })
  closeSync(log)
  const said = readFileSync(LOG, 'utf8').trimEnd().split('\n').slice(-8).join('\n')
  check(command, args, result, said)
}

const check = (command, args, { status, signal, error }, said = '') => {
  if (status === 0) return
  const how = error?.message ?? (signal ? `ended by ${signal}` : `exit code ${status}`)
  throw new Stop([`\`${[command, ...args].join(' ')}\`: ${how}`, said].filter(Boolean).join('\n'))
}

/** npm by the path it gave its scripts, which works where `npm` is a shell script of another name. */
export const npm = () => {
  const cli = process.env.npm_execpath
  return cli?.endsWith('.js') ? [process.execPath, cli] : ['npm']
}

/** The command line of a program that comes with the Node packages. */
export const nodeTool = name => inRoot('node_modules', '.bin', name)
