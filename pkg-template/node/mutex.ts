// One thread at a time, of all programs that use the same folder. It is a file, which others cannot create.
import { randomUUID } from 'node:crypto'
import {
  closeSync, fstatSync, linkSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync
} from 'node:fs'
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { codeOf, hasEnded, ownerOf } from './owner.js'

/** Milliseconds after which a thread counts as ended that still holds it. It is held without waiting for anything. */
const LONGEST = 10_000
/** Milliseconds after which a thread gives up. */
const PATIENCE = 30_000
/** Milliseconds between two tries. */
const PERIOD = 5

const FILE = 'mutex'
/** The file that a thread leaves behind if it is ended while it removes another's. */
const LEFT = /^mutex-[\da-f-]{36}$/

const isWindows = process.platform === 'win32'

/** The mutex of a folder, held by this thread. */
export interface Mutex {
  /** When it was taken, by the clock of the folder's disk. */
  taken: number
  /** Whether this thread still holds it. If it was stopped for long, another one has taken it. */
  isHeld(): boolean
  /** Lets it go. Does not throw. */
  leave(): void
}

/**
 * Waits until no other thread has the mutex of `folder`, and takes it. A full disk is no hindrance.
 * Rejects if the folder cannot be written, or if another thread does not let it go.
 */
export async function enter(folder: string): Promise<Mutex> {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, FILE)
  const begun = performance.now()
  let [seen, since] = ['', begun]
  for (;;) {
    const taken = take(path)
    if (taken) return held(path, taken)
    const now = performance.now()
    const other = idOf(path)
    // Clocks of two machines may differ, so the time is what passes here.
    if (other !== seen) [seen, since] = [other, now]
    if (other !== '' && (hasEnded(ownerIn(path)) || now - since > LONGEST)) clear(path, other)
    if (now - begun > PATIENCE) throw new Error(`${path} is held by another program`)
    await new Promise(resolve => setTimeout(resolve, PERIOD))
  }
}

function held(path: string, file: Stats): Mutex {
  const isHeld = () => idOf(path) === idOfFile(file)
  const leave = () => {
    if (isHeld()) remove(path)
  }
  return { taken: file.mtimeMs, isHeld, leave }
}

/** Creates the file; `undefined` if there is one. */
function take(path: string): Stats | undefined {
  let file
  try {
    file = openSync(path, 'wx')
  } catch (error) {
    // Windows says `EPERM` while a file is being deleted, and also if nothing may be written.
    if (codeOf(error) === 'EEXIST' || codeOf(error) === 'EPERM' && idOf(path) !== '') return undefined
    throw error
  }
  try {
    writeSync(file, ownerOf(threadId))
  } catch {
    // The disk is full. If this thread ends before it lets go, the others wait longer.
  }
  const found = fstatSync(file)
  closeSync(file)
  return found
}

/** Removes the file `seen`, whose thread has ended. Throws if nothing can be removed here. */
function clear(path: string, seen: string): void {
  const taken = `${path}-${randomUUID()}`
  try {
    renameSync(path, taken)
  } catch (error) {
    // Another thread was faster. On Windows it may just have the file open.
    if (codeOf(error) === 'ENOENT' || isWindows) return
    throw error
  }
  try {
    // Another thread was faster, and this is the file of a third one.
    if (idOf(taken) !== seen) linkSync(taken, path)
  } catch {
    // A fourth one was faster still.
  }
  remove(taken)
}

/** Lets go for a thread of this process that has ended. */
export function leaveFor(thread: number, folder: string): void {
  const path = join(folder, FILE)
  if (ownerIn(path) === ownerOf(thread)) remove(path)
}

/** Whether `name` is a file that a thread has left behind. Those of a thread that still runs are younger. */
export const isLeft = (folder: string, name: string, { taken }: Mutex): boolean =>
  LEFT.test(name) && taken - changed(join(folder, name)) > LONGEST

/** When a file was changed, by the clock of its disk; later than any if it is gone. */
export function changed(path: string): number {
  try {
    return statSync(path).mtimeMs
  } catch {
    return Infinity
  }
}

/** Removes a file, if that is possible. */
export function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // It is a folder, or may not be removed.
  }
}

const idOfFile = ({ ino, mtimeMs }: Stats): string => `${ino} ${mtimeMs}`

/** Tells a file from a later one of the same name; empty if there is none. */
function idOf(path: string): string {
  try {
    return idOfFile(statSync(path))
  } catch {
    return ''
  }
}

function ownerIn(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
