// The locks of `navigator.locks`, for all programs that use the same folder. A lock that is held is a file. Its name says
// all, because a full disk still takes empty files.
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'
import { changed, enter, leaveFor, remove } from './mutex.js'
import type { Mutex } from './mutex.js'
import { hasEnded, ownerOf } from './owner.js'
import { place } from './place.js'

/** Milliseconds between two looks at a lock that another thread holds. */
const PERIOD = 100
/** Milliseconds after which a thread says that it still holds its locks. */
const BEAT = 20_000
/** Milliseconds without a word from a lock's thread, after which the lock is free. For threads that cannot be seen from here. */
const LONGEST = 120_000

type Mode = 'exclusive' | 'shared'

/** Parts of a file's name: a hash of the lock's name, the mode and the owner. */
const FILE = /^([\da-f]{16})\.(exclusive|shared)\.([\w-]+\.\d+\.[\d-]+\.\d+)\.[\da-f]+$/

const folder = (): string => join(place(), 'locks')
const keyOf = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 16)

/** The names of the locks that this thread has taken, by their keys. */
const names = new Map<string, string>()
const own = new Set<string>()
let beating: NodeJS.Timeout | undefined

/** The locks that are held. Removes the files of threads that have ended. */
function held({ taken }: Mutex): { key: string, mode: string }[] {
  return readdirSync(folder()).flatMap(file => {
    const [, key, mode, owner] = FILE.exec(file) ?? []
    if (key === undefined) return []
    const path = join(folder(), file)
    if (!(hasEnded(owner!) ?? taken - changed(path) > LONGEST)) return [{ key, mode: mode! }]
    remove(path)
    return []
  })
}

/** Does `work` while no other thread takes a lock. */
async function alone<T>(work: (mutex: Mutex) => T): Promise<T> {
  mkdirSync(folder(), { recursive: true })
  const mutex = await enter(place())
  try {
    return work(mutex)
  } finally {
    mutex.leave()
  }
}

/** Takes a lock if it is free; the function that lets it go. */
const take = (name: string, mode: Mode): Promise<(() => void) | undefined> => alone(mutex => {
  const key = keyOf(name)
  const others = held(mutex).filter(lock => lock.key === key)
  if (others.some(lock => mode === 'exclusive' || lock.mode === 'exclusive')) return undefined
  const path = join(folder(), `${key}.${mode}.${ownerOf(threadId)}.${randomBytes(4).toString('hex')}`)
  closeSync(openSync(path, 'wx'))
  own.add(path)
  names.set(key, name)
  beating ??= setInterval(beat, BEAT).unref()
  return () => {
    own.delete(path)
    remove(path)
  }
})

/** Changes the files, so that their disk notes the time by its own clock. */
function beat(): void {
  for (const path of own) {
    try {
      const file = openSync(path, 'r+')
      writeSync(file, '.', 0)
      closeSync(file)
    } catch {
      // It was removed, because this thread was stopped for long, or the disk is full.
    }
  }
}

/** Frees what a thread of this process has held that has ended. */
export function releaseAll(thread: number): void {
  try {
    leaveFor(thread, place())
    for (const file of readdirSync(folder())) {
      if (FILE.exec(file)?.[3] === ownerOf(thread)) remove(join(folder(), file))
    }
  } catch {
    // There is no folder yet.
  }
}

/** Options of a request, as of `navigator.locks`. */
interface Wish {
  mode: Mode
  ifAvailable?: boolean
  signal?: AbortSignal
}

/** A `LockManager`, as far as the crate uses it. */
export const locks = {
  async request(
    name: string, { mode, ifAvailable, signal }: Wish, callback: (lock: object | null) => unknown
  ): Promise<unknown> {
    let release = await take(name, mode)
    if (!release && ifAvailable) return callback(null)
    while (!release) {
      await sleep(PERIOD, undefined, { signal })
      release = await take(name, mode)
    }
    try {
      return await callback({ name, mode })
    } finally {
      release()
    }
  },

  /** The locks that are held. Those whose names this thread does not know have others. */
  async query(): Promise<{ held: { name: string, mode: string }[] }> {
    const found = await alone(held)
    return { held: found.map(({ key, mode }) => ({ name: names.get(key) ?? key, mode })) }
  }
}
