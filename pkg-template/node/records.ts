// The records of stored models: a file of JSON for each, in transactions.
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { enter, isLeft, remove } from './mutex.js'
import type { Mutex } from './mutex.js'
import { codeOf } from './owner.js'

/** The names of our files, and the ids in them. The folder may hold others, which are not ours to delete. */
const RECORD = /^(\d+-\d+)\.json$/
const UNFINISHED = /^\d+-\d+\.json\.new$/

/** The errors of a disk without room, which deleting models may help. */
const FULL = ['ENOSPC', 'EDQUOT']

/** An error in words. The crate knows those of browsers by their names. */
export function said(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const code = codeOf(error) ?? ''
  if (FULL.includes(code)) return `QuotaExceededError: ${message}`
  return code === 'ENOENT' ? `NotFoundError: ${message}` : message
}

/** Does `work`; its failure is in the words that the crate knows. */
function inWords<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new Error(said(error))
  }
}

export class Records {
  #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Begins a transaction. If it `writes`, no other one does until it ends. */
  async begin(writes: boolean): Promise<Transaction> {
    if (!writes) return new Transaction(this.#folder, 'it only reads')
    try {
      return new Transaction(this.#folder, await enter(this.#folder))
    } catch (error) {
      // Models in a folder that cannot be written can be loaded all the same.
      return new Transaction(this.#folder, said(error))
    }
  }
}

/** Changes are made by `end`: all records that are put, or none. Those that are removed are removed after that. */
export class Transaction {
  #folder: string
  /** The right to write, or the reason why nothing can be written. */
  #mutex: Mutex | string
  /** The records that are new or changed; `undefined` for one that is removed. */
  #changes = new Map<string, object | undefined>()

  constructor(folder: string, mutex: Mutex | string) {
    this.#folder = folder
    this.#mutex = mutex
  }

  /** All records that can be read as such. Throws if the disk does not give them. */
  all(): object[] {
    const files = inWords(() => readdirSync(this.#folder))
    const stored = files.flatMap(file => RECORD.exec(file)?.[1] ?? [])
    const ids = new Set([...stored, ...this.#changes.keys()])
    return [...ids].map(id => this.get(id)).filter(record => record !== undefined)
  }

  /**
   * A record; `undefined` if there is none, or a broken one. Throws if the disk does not give it: the bytes
   * of a file without a record are deleted.
   */
  get(id: string): object | undefined {
    if (this.#changes.has(id)) return this.#changes.get(id)
    const text = inWords(() => textOf(this.#path(id)))
    try {
      const record = text && JSON.parse(text)
      return record?.id === id ? record : undefined
    } catch {
      return undefined
    }
  }

  put(id: string, record: object): void {
    this.#changes.set(id, record)
  }

  remove(id: string): void {
    this.#changes.set(id, undefined)
  }

  /** Deletes what programs left behind that were ended, and records that cannot be read. */
  sweep(): void {
    const mutex = this.#mutex
    if (typeof mutex === 'string') return
    for (const file of inWords(() => readdirSync(this.#folder))) {
      const id = RECORD.exec(file)?.[1]
      const isBroken = id !== undefined && this.get(id) === undefined
      if (isBroken || UNFINISHED.test(file) || isLeft(this.#folder, file, mutex)) remove(join(this.#folder, file))
    }
  }

  /** Makes the changes. Throws if they cannot be made. */
  end(): void {
    if (this.#changes.size === 0) return
    if (typeof this.#mutex === 'string') throw new Error(this.#mutex)
    if (!this.#mutex.isHeld()) throw new Error('this program was stopped for long, and another one has written meanwhile')
    const put = [...this.#changes].flatMap(([id, record]) => record ? [{ path: this.#path(id), record }] : [])
    inWords(() => {
      try {
        for (const { path, record } of put) writeFileSync(`${path}.new`, JSON.stringify(record))
        for (const { path } of put) renameSync(`${path}.new`, path)
      } catch (error) {
        for (const { path } of put) remove(`${path}.new`)
        throw error
      }
      for (const [id, record] of this.#changes) {
        if (!record) rmSync(this.#path(id), { force: true })
      }
    })
  }

  /** Lets others write. */
  leave(): void {
    if (typeof this.#mutex !== 'string') this.#mutex.leave()
    this.#mutex = 'the transaction has ended'
  }

  #path(id: string): string {
    return join(this.#folder, `${id}.json`)
  }
}

/** The text of a file; `undefined` if there is none. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
