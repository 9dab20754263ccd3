// Stored models in a folder of the user's, for the crate: the bytes of each file, and its record beside them.
import { mkdirSync } from 'node:fs'
import { open, readdir, rm, stat, statfs } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskAnswer, Stored } from '../platform.js'
import { locks } from './locks.js'
import { place } from './place.js'
import { Records, said } from './records.js'

const SUFFIX = '.bytes'
/** The name of a file of ours, and that of its record in it. Others are not ours to delete. */
const FILE = /^(\d+-\d+)\.bytes$/

class Folder implements Stored {
  readonly records: Records
  #folder: string
  #open = new Map<string, Promise<FileHandle>>()

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true })
    this.#folder = folder
    this.records = new Records(folder)
  }

  async canWrite(): Promise<boolean> {
    return true
  }

  async sizes(): Promise<Map<string, number>> {
    const sizes = new Map<string, number>()
    for (const file of await readdir(this.#folder)) {
      const id = FILE.exec(file)?.[1]
      if (id === undefined) continue
      // Another program may delete a file meanwhile.
      const found = await stat(join(this.#folder, file)).catch(() => undefined)
      if (found) sizes.set(id, found.size)
    }
    return sizes
  }

  async read(name: string, start: number, length: number, array: ArrayBuffer): Promise<DiskAnswer> {
    return answered(array, async () => {
      const file = await this.#opened(name, 'r')
      const bytes = new Uint8Array(array, 0, length)
      let end = 0
      while (end < length) {
        const { bytesRead } = await file.read(bytes, end, length - end, start + end)
        if (bytesRead === 0) break
        end += bytesRead
      }
      return { length: end, sha256: await hash(bytes.subarray(0, end)) }
    })
  }

  async write(name: string, start: number, length: number, array: ArrayBuffer): Promise<DiskAnswer> {
    return answered(array, async () => {
      const file = await this.#opened(name, 'w')
      const bytes = new Uint8Array(array, 0, length)
      const sha256 = hash(bytes)
      for (let end = 0; end < length;) {
        end += (await file.write(bytes, end, length - end, start + end)).bytesWritten
      }
      return { length, sha256: await sha256 }
    })
  }

  async flush(name: string): Promise<DiskAnswer> {
    return answered(undefined, async () => {
      await (await this.#open.get(`w ${name}`))?.sync()
      return {}
    })
  }

  async remove(name: string): Promise<void> {
    await this.#close(`r ${name}`)
    await this.#close(`w ${name}`)
    // On Windows, a file that another program has open stays.
    await rm(this.#path(name), { force: true }).catch(() => {})
  }

  end(): void {
    for (const key of this.#open.keys()) void this.#close(key)
  }

  /** The file, open to be read or written. To be written, it is created if there is none. */
  #opened(name: string, to: 'r' | 'w'): Promise<FileHandle> {
    const key = `${to} ${name}`
    const known = this.#open.get(key)
    if (known) return known
    const path = this.#path(name)
    // No flag of Node creates a file that can be written anywhere and keeps what it holds.
    const create = async () => (await open(path, 'a')).close().then(() => open(path, 'r+'))
    const opening = to === 'r' ? open(path, 'r') : create()
    this.#open.set(key, opening)
    opening.catch(() => this.#open.delete(key))
    return opening
  }

  async #close(key: string): Promise<void> {
    const file = this.#open.get(key)
    this.#open.delete(key)
    await file?.then(open => open.close()).catch(() => {})
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${SUFFIX}`)
  }
}

/** The answer of `work`, with the array of the question. */
async function answered(array: ArrayBuffer | undefined, work: () => Promise<DiskAnswer>): Promise<DiskAnswer> {
  try {
    return { array, ...await work() }
  } catch (error) {
    return { array, failed: said(error) }
  }
}

const hash = (bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> => crypto.subtle.digest('SHA-256', bytes)

export const disk = {
  open: async () => new Folder(place()),
  locks: locks as unknown as LockManager,
  free: async () => {
    try {
      const { bavail, bsize } = await statfs(place())
      return bavail * bsize
    } catch {
      return NaN
    }
  },
  used: async () => {
    try {
      const sizes = await new Folder(place()).sizes()
      return [...sizes.values()].reduce((sum, size) => sum + size, 0)
    } catch {
      // There is no such folder, and none can be made.
      return 0
    }
  }
}
