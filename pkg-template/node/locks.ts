// The locks of `navigator.locks`, for all programs that use the same folder. A lock that is held is a file.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { age, enter, HOST, runs } from './mutex.js'
import { place } from './place.js'

/** Milliseconds between two looks at a lock that another thread holds. */
const PERIOD = 100
/** Milliseconds after which a thread says that it still holds its locks. */
const BEAT = 30_000
/** A lock of which its thread has not said so for so many milliseconds is free. */
const LONGEST = 300_000

type Mode = 'exclusive' | 'shared'

/** A lock that is held, by the name of its file. */
interface Held {
  file: string
  key: string
  mode: string
  host: string
  pid: number
}

const folder = (): string => join(place(), 'locks')
const keyOf = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 16)
const owner = (thread: number): string => `${HOST}.${process.pid}.${thread}`

let count = 0
const own = new Set<string>()
let beating: NodeJS.Timeout | undefined

/** The locks that are held. Removes the files of threads that have ended. */
function held(): Held[] {
  const found = readdirSync(folder()).map(file => {
    const [key = '', mode = '', host = '', pid] = file.split('.')
    return { file, key, mode, host, pid: Number(pid) }
  })
  return found.filter(({ file, host, pid }) => {
    const path = join(folder(), file)
    const isFree = host === HOST && !runs(pid) || age(path) > LONGEST
    if (isFree) rmSync(path, { force: true })
    return !isFree
  })
}

/** Takes a lock if it is free; the function that lets it go. */
async function take(name: string, mode: Mode): Promise<(() => void) | undefined> {
  mkdirSync(folder(), { recursive: true })
  const leave = await enter(place())
  try {
    const key = keyOf(name)
    const others = held().filter(lock => lock.key === key)
    if (others.some(lock => mode === 'exclusive' || lock.mode === 'exclusive')) return undefined
    const path = join(folder(), `${key}.${mode}.${owner(threadId)}.${++count}`)
    writeFileSync(path, name)
    own.add(path)
    beating ??= setInterval(beat, BEAT).unref()
    return () => {
      own.delete(path)
      rmSync(path, { force: true })
    }
  } finally {
    leave()
  }
}

function beat(): void {
  const now = new Date()
  for (const path of own) {
    try {
      utimesSync(path, now, now)
    } catch {
      // It was removed, because this thread was stopped for long.
    }
  }
}

/** Frees the locks of a thread of this process that has ended. */
export function releaseAll(thread: number): void {
  try {
    const of = `.${owner(thread)}.`
    for (const file of readdirSync(folder())) {
      if (file.includes(of)) rmSync(join(folder(), file), { force: true })
    }
  } catch {
    // There is no folder yet.
  }
}

/** A `LockManager`, as far as the crate uses it. */
export const locks = {
  async request(
    name: string, { mode, ifAvailable }: { mode: Mode, ifAvailable?: boolean }, callback: (lock: object | null) => unknown
  ): Promise<unknown> {
    let release = await take(name, mode)
    if (!release && ifAvailable) return callback(null)
    while (!release) {
      await new Promise(resolve => setTimeout(resolve, PERIOD))
      release = await take(name, mode)
    }
    try {
      return await callback({ name, mode })
    } finally {
      release()
    }
  },

  async query(): Promise<{ held: { name: string, mode: string }[] }> {
    mkdirSync(folder(), { recursive: true })
    const named = held().map(({ file, mode }) => ({ name: nameOf(file), mode }))
    return { held: named.flatMap(({ name, mode }) => name === undefined ? [] : [{ name, mode }]) }
  }
}

function nameOf(file: string): string | undefined {
  try {
    return readFileSync(join(folder(), file), 'utf8')
  } catch {
    return undefined
  }
}
