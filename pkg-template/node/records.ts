// The records of stored models: a file of JSON for each, in transactions.
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, enter } from './mutex.js'

const SUFFIX = '.json'

/** The errors of a disk without room. */
const FULL = ['ENOSPC', 'EDQUOT', 'EFBIG']

/** An error in words. The crate knows those of browsers by their names. */
export function said(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const code = codeOf(error) ?? ''
  if (FULL.includes(code)) return `QuotaExceededError: ${message}`
  return code === 'ENOENT' ? `NotFoundError: ${message}` : message
}

export class Records {
  #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Begins a transaction. If it `writes`, no other one does until it ends. */
  async begin(writes: boolean): Promise<Transaction> {
    if (!writes) return new Transaction(this.#folder, () => {})
    try {
      return new Transaction(this.#folder, await enter(this.#folder))
    } catch (error) {
      // Models in a folder that cannot be written can be loaded all the same.
      // The crate then goes on as with a full disk.
      return new Transaction(this.#folder, () => {}, `QuotaExceededError: ${said(error)}`)
    }
  }
}

/** Changes are made by `end`, or not at all. */
export class Transaction {
  #folder: string
  #leave: () => void
  /** The reason why nothing can be written. */
  #blocked: string | undefined
  /** The records that are new or changed; `undefined` for one that is removed. */
  #changes = new Map<string, object | undefined>()

  constructor(folder: string, leave: () => void, blocked?: string) {
    this.#folder = folder
    this.#leave = leave
    this.#blocked = blocked
  }

  all(): object[] {
    const stored = readdirSync(this.#folder).filter(file => file.endsWith(SUFFIX))
    const ids = new Set([...stored.map(file => file.slice(0, -SUFFIX.length)), ...this.#changes.keys()])
    return [...ids].map(id => this.get(id)).filter(record => record !== undefined)
  }

  /** A record; `undefined` if there is none or it cannot be read. */
  get(id: string): object | undefined {
    if (this.#changes.has(id)) return this.#changes.get(id)
    try {
      const record = JSON.parse(readFileSync(this.#path(id), 'utf8'))
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

  /** Makes the changes. Throws if they cannot be made. */
  end(): void {
    if (this.#blocked !== undefined && this.#changes.size > 0) throw new Error(this.#blocked)
    try {
      for (const [id, record] of this.#changes) {
        if (record) this.#write(id, record)
        else rmSync(this.#path(id), { force: true })
      }
    } catch (error) {
      throw new Error(said(error))
    }
  }

  /** Lets others write. */
  leave(): void {
    this.#leave()
    this.#leave = () => {}
  }

  /** A program that ends in between leaves the record as it was. */
  #write(id: string, record: object): void {
    const path = this.#path(id)
    const unfinished = `${path}.new`
    try {
      writeFileSync(unfinished, JSON.stringify(record))
      renameSync(unfinished, path)
    } catch (error) {
      rmSync(unfinished, { force: true })
      throw error
    }
  }

  #path(id: string): string {
    return join(this.#folder, `${id}${SUFFIX}`)
  }
}
