// Keeps an index in IndexedDB: each in a database of its own.
import { BitNetError } from '../error.js'
import { damaged, LAYOUT } from './storage.js'
import type { About, Changes, IndexStorage, Stored, StoredBlock, StoredDocument, StoredPassage } from './storage.js'

/** The stores, and the fields by which each finds its records. `about` has one record. */
const STORES = { about: null, documents: 'id', passages: 'slot', blocks: 'number' } as const

type Store = keyof typeof STORES
const NAMES = Object.keys(STORES) as Store[]

/** The key of the record of `about`. */
const ABOUT = 'about'

/** Blocks that are read at once. */
const AT_ONCE = 32

const databaseOf = (name: string): string => `tritloom-search:${name}`

export class IndexedDbStorage implements IndexStorage {
  #database: IDBDatabase

  private constructor(database: IDBDatabase) {
    this.#database = database
    // Another page deletes the index, and must not have to wait for this one.
    database.onversionchange = () => database.close()
  }

  static async open(name: string): Promise<IndexedDbStorage> {
    try {
      if (!globalThis.indexedDB) throw new Error("there is no IndexedDB here; `storage: 'memory'` needs none")
      const opening = indexedDB.open(databaseOf(name), LAYOUT)
      opening.onupgradeneeded = () => {
        for (const [store, keyPath] of Object.entries(STORES)) opening.result.createObjectStore(store, { keyPath })
      }
      return new IndexedDbStorage(await answer(opening))
    } catch (error) {
      throw failure(error)
    }
  }

  static async delete(name: string): Promise<void> {
    try {
      if (globalThis.indexedDB) await answer(indexedDB.deleteDatabase(databaseOf(name)))
    } catch (error) {
      throw failure(error)
    }
  }

  read(onBlock: (block: StoredBlock) => void): Promise<Stored> {
    return this.#run('readonly', async store => {
      const about = await answer<About | undefined>(store('about').get(ABOUT))
      const documents = await answer<StoredDocument[]>(store('documents').getAll())
      for (let range: IDBKeyRange | null = null; ;) {
        const blocks: StoredBlock[] = await answer(store('blocks').getAll(range, AT_ONCE))
        blocks.forEach(onBlock)
        if (blocks.length < AT_ONCE) return { about, documents }
        range = IDBKeyRange.lowerBound(blocks.at(-1)!.number, true)
      }
    })
  }

  passages(slots: readonly number[]) {
    return this.#run('readonly', async store => {
      const about = answer<About | undefined>(store('about').get(ABOUT))
      const passages = slots.map(slot => answer<StoredPassage | undefined>(store('passages').get(slot)))
      return { edition: (await about)?.edition ?? 0, passages: await Promise.all(passages) }
    })
  }

  write(about: About, { documents, removed, passages, freed, blocks }: Changes): Promise<boolean> {
    return this.#run('readwrite', async store => {
      const before = await answer<About | undefined>(store('about').get(ABOUT))
      if ((before?.edition ?? 0) !== about.edition - 1) return false
      store('about').put(about, ABOUT)
      for (const id of removed) store('documents').delete(id)
      for (const slot of freed) store('passages').delete(slot)
      for (const document of documents) store('documents').put(document)
      for (const passage of passages) store('passages').put(passage)
      for (const block of blocks) store('blocks').put(block)
      return true
    })
  }

  close(): void {
    this.#database.close()
  }

  /** Runs `job` in a transaction, and resolves when that is complete. */
  async #run<T>(mode: IDBTransactionMode, job: (store: (name: Store) => IDBObjectStore) => Promise<T>): Promise<T> {
    try {
      const transaction = this.#database.transaction(NAMES, mode)
      const end = new Promise<void>((resolve, reject) => {
        transaction.oncomplete = () => resolve()
        transaction.onabort = () => reject(transaction.error)
      })
      try {
        const result = await job(name => transaction.objectStore(name))
        await end
        return result
      } catch (error) {
        end.catch(() => {}) // It has the same reason, or comes of this.
        try {
          transaction.abort()
        } catch { /* It has ended by itself. */ }
        throw error
      }
    } catch (error) {
      throw failure(error)
    }
  }
}

const answer = <T>(request: IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result)
  request.onerror = () => reject(request.error)
})

/** The names of the browser's errors for a database that is not laid out as this one. */
const DAMAGED = ['NotFoundError', 'VersionError', 'DataError', 'NotReadableError']

function failure(error: unknown): BitNetError {
  if (error instanceof BitNetError) return error
  const { name, message } = (error ?? {}) as Error
  if (name === 'QuotaExceededError') return new BitNetError('storage-full', "the browser's storage is full", { cause: error })
  if (DAMAGED.includes(name)) return damaged(`the browser says ${name}: ${message}`, error)
  const why = name === 'InvalidStateError' ? 'the index was deleted' : message ?? 'the transaction was ended'
  return new BitNetError('storage', `the browser's storage failed: ${why}`, { cause: error })
}
