// A disk in the page in place of the browser's, in a browser that stores all in IndexedDB. It holds
// a certain number of bytes of blobs there, and counts deleted ones as late as a test wants. A
// browser's own quota serves tests badly: it is remembered for a while, and what was deleted counts
// until the browser next looks.
import type { Page } from '@playwright/test'

export interface Disk {
  /** The bytes that it has room for. */
  size: number
  /**
   * The answer of `navigator.storage.estimate()`: the truth, or, as in Chromium, that there is
   * plenty.
   */
  estimate: 'true' | 'plenty'
  /**
   * When a write beyond the size fails: in the call, or, as in Chromium, at the end of its
   * transaction.
   */
  fails: 'at once' | 'at the end'
  /** How many writes it refuses before it notices that one more blob was deleted. */
  late: number
  /** Whether it has no room for a record either. */
  refusesRecords: boolean
}

declare global {
  interface Window {
    disk: Disk
  }
}

/**
 * Gives the page such a disk, large and prompt, before it stores anything. It serves loads in the
 * page's own thread.
 */
export const insertDisk = (page: Page) => page.evaluate(insert)

/** Changes what the disk is like; its contents stay. */
export const setDisk = (page: Page, disk: Partial<Disk>) => page.evaluate(disk => { Object.assign(window.disk, disk) }, disk)

const insert = () => {
  const disk: Disk = { size: 1e12, estimate: 'plenty', fails: 'at the end', late: 0, refusesRecords: false }
  window.disk = disk
  const stored = new Map<string, { key: IDBValidKey, bytes: number }>()
  /** The bytes of each blob that is deleted and still counts. */
  const deleted: number[] = []
  /** Writes that were refused since that changed. */
  let refused = 0
  const used = () => [...stored.values()].reduce((sum, { bytes }) => sum + bytes, deleted.reduce((sum, bytes) => sum + bytes, 0))
  const refuse = () => {
    if (++refused < disk.late) return
    refused = 0
    deleted.shift()
  }
  StorageManager.prototype.getDirectory = async () => { throw new DOMException('no files here', 'SecurityError') }
  StorageManager.prototype.estimate = async () => ({ usage: used(), quota: disk.estimate === 'true' ? disk.size : 1e12 })

  const { put, delete: remove, clear, get } = IDBObjectStore.prototype
  /** How many writes each transaction has seen. */
  const writes = new WeakMap<IDBTransaction, number>()

  /** Aborts the transaction once it gets no further writes. */
  const fail = (store: IDBObjectStore, error: DOMException) => {
    const { transaction } = store
    if (failing.has(transaction)) return
    failing.add(transaction)
    failLater(store, error)
  }
  const failing = new WeakSet<IDBTransaction>()
  const failLater = (store: IDBObjectStore, error: DOMException) => {
    const { transaction } = store
    const before = writes.get(transaction)
    get.call(store, 'nothing').onsuccess = () => {
      if (writes.get(transaction) !== before) return failLater(store, error)
      Object.defineProperty(transaction, 'error', { value: error })
      transaction.abort()
    }
  }

  const forget = ({ transaction }: IDBObjectStore, isMeant: (key: IDBValidKey) => boolean) => {
    const gone = [...stored].filter(([, { key }]) => isMeant(key))
    for (const [name] of gone) stored.delete(name)
    transaction.addEventListener('complete', () => { if (disk.late > 0) deleted.push(...gone.map(([, { bytes }]) => bytes)) })
    transaction.addEventListener('abort', () => { for (const [name, blob] of gone) stored.set(name, blob) })
  }

  IDBObjectStore.prototype.put = function (value, key) {
    writes.set(this.transaction, (writes.get(this.transaction) ?? 0) + 1)
    const isBlob = value instanceof Blob
    const isFull = isBlob ? used() + value.size > disk.size : disk.refusesRecords
    const error = new DOMException('the disk is full', 'QuotaExceededError')
    if (isFull && isBlob) refuse()
    if (isFull && disk.fails === 'at once') throw error
    const request = put.call(this, value, key)
    if (isFull) {
      fail(this, error)
    } else if (isBlob) {
      const name = JSON.stringify(key)
      stored.set(name, { key: key!, bytes: value.size })
      this.transaction.addEventListener('abort', () => stored.delete(name))
    }
    return request
  }
  IDBObjectStore.prototype.delete = function (query) {
    const range = query instanceof IDBKeyRange ? query : IDBKeyRange.only(query)
    if (this.name === 'parts') forget(this, key => range.includes(key))
    return remove.call(this, query)
  }
  IDBObjectStore.prototype.clear = function () {
    if (this.name === 'parts') forget(this, () => true)
    return clear.call(this)
  }
}
