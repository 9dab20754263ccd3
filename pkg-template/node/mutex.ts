// One thread at a time, of all programs that use the same folder.
import { randomUUID } from 'node:crypto'
import { linkSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync, closeSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** A thread that holds it longer than so many milliseconds has ended in between. It is held without waiting. */
const LONGEST = 10_000
/** Milliseconds after which a thread gives up. */
const PATIENCE = 30_000
/** Milliseconds between two tries. */
const PERIOD = 5

export const HOST = hostname().replace(/[^\w-]/g, '_')

/** The code of a system's error. */
export const codeOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code

/** Whether a process of this machine runs. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
}

/**
 * Waits until no other thread has the mutex of `folder`, and takes it. Gives the function that lets it go.
 * Rejects if the folder cannot be written.
 */
export async function enter(folder: string): Promise<() => void> {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'mutex')
  const name = `${HOST} ${process.pid} ${randomUUID()}`
  const begun = performance.now()
  while (!take(path, name)) {
    if (performance.now() - begun > PATIENCE) throw new Error(`${path} is held by another program`)
    clear(path)
    await new Promise(resolve => setTimeout(resolve, PERIOD))
  }
  return () => {
    // Another thread may have taken it because this one was stopped for long.
    if (read(path) === name) rmSync(path, { force: true })
  }
}

function take(path: string, name: string): boolean {
  let file
  try {
    file = openSync(path, 'wx')
  } catch (error) {
    // Windows says `EPERM` while a file is being deleted, and also if nothing may be written.
    if (codeOf(error) === 'EEXIST' || codeOf(error) === 'EPERM' && read(path) !== undefined) return false
    throw error
  }
  try {
    writeSync(file, name)
  } finally {
    closeSync(file)
  }
  return true
}

/** Removes the mutex of a thread that has ended. */
function clear(path: string): void {
  const name = read(path)
  if (name === undefined) return
  const [host, pid] = name.split(' ')
  const isDead = host === HOST && !runs(Number(pid))
  if (!isDead && age(path) < LONGEST) return
  const taken = `${path}-${randomUUID()}`
  try {
    renameSync(path, taken)
    // Another thread was faster, and this is the mutex of a third one.
    if (read(taken) !== name) linkSync(taken, path)
  } catch {
    // Another thread was faster.
  }
  rmSync(taken, { force: true })
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Milliseconds since a file was changed; 0 if it is gone. */
export function age(path: string): number {
  try {
    return Date.now() - statSync(path).mtimeMs
  } catch {
    return 0
  }
}
