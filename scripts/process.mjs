// Running other programs.
import { spawn, spawnSync } from 'node:child_process'
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  statSync
} from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { inRoot, ROOT } from './paths.mjs'
import { Stop } from './report.mjs'

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

/** The output of a program, or null if the program is missing or fails. */
export const capture = (command, args, { env = {}, input } = {}) => {
  const result = spawnSync(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    input: input ?? '',
    encoding: 'utf8'
  })
  return result.status === 0 ? result.stdout.trim() : null
}

/** Runs a program whose output the user sees; throws where it fails. */
export const run = (command, args, { env = {}, cwd = ROOT } = {}) => {
  const result = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit']
  })
  check(command, args, result)
}

/**
 * Runs a program, and passes what it prints on its standard output to `hear`, as it comes;
 * rejects where it fails. The user sees its standard error.
 */
const listen = async (command, args, hear, { env = {} } = {}) => {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  child.stdout.setEncoding('utf8').on('data', hear)
  check(command, args, await ended(child))
}

const ended = child =>
  new Promise(resolve => {
    child.on('error', error => resolve({ error }))
    child.on('close', (status, signal) => resolve({ status, signal }))
  })

/** Runs a program whose output the user sees, without blocking others; rejects where it fails. */
export const runOpen = (command, args, options) => runHearing(command, args, () => {}, options)

/** Runs a program whose output the user sees, and `hear` as well; rejects where it fails. */
export const runHearing = (command, args, hear, options) =>
  listen(
    command,
    args,
    text => {
      process.stdout.write(text)
      hear(text)
    },
    options
  )

/** Runs a program; what it prints on its standard output. Rejects where it fails. */
export const outputOf = async (command, args, options) => {
  let printed = ''
  await listen(command, args, text => (printed += text), options)
  return printed
}

/**
 * Runs an installer with its output in a log, so that a step stays one line. If it fails, rejects
 * with the log's last lines.
 */
export const runQuietly = async (command, args, { env = {}, cwd = ROOT, log = 'setup' } = {}) => {
  const path = inRoot('target', `${log}.log`)
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(path, 'w')
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', file, file]
  })
  const result = await ended(child)
  closeSync(file)
  const last = readFileSync(path, 'utf8').trimEnd().split('\n').slice(-8).join('\n')
  check(command, args, result, `${last}\nThe whole output: ${path}`)
}

const check = (command, args, { status, signal, error }, said = '') => {
  if (status === 0) return
  const how = error?.message ?? (signal ? `ended by ${signal}` : `exit code ${status}`)
  throw new Stop([`\`${[command, ...args].join(' ')}\`: ${how}`, said].filter(Boolean).join('\n'))
}

/** The command that runs npm. npm tells its scripts its own path, which works on every system. */
export const npm = () => {
  const cli = process.env.npm_execpath
  return cli?.endsWith('.js') ? [process.execPath, cli] : ['npm']
}

/** The command line of a program that comes with the Node packages. */
export const nodeTool = name => inRoot('node_modules', '.bin', name)
