// A disk in the page, in place of the browser's: it holds exactly so many bytes of blobs in IndexedDB, and is as late to
// count what was deleted as a test wants. A browser's own quota is of little use for that: it is remembered for a while,
// and what was deleted counts until the browser gets round to it.
import type { Page } from '@playwright/test'

export interface Disk {
  /** Bytes that it holds. */
  size: number
  /** What `navigator.storage.estimate()` tells: the truth, or, as in Chromium, that there is plenty. */
  estimate: 'true' | 'plenty'
  /** When a write beyond the size fails: as it is asked for, or, as in Chromium, at its transaction's end. */
  fails: 'at once' | 'at the end'
  /** Writes that it refuses before it counts that one more blob was deleted. */
  late: number
}

declare global {
  interface Window {
    disk: Disk
  }
}

/** Gives the page such a disk, before it stores anything: as large as need be, and prompt. For loads in its own thread. */
export const insertDisk = (page: Page) => page.evaluate(insert)

/** Makes the disk another one; what it holds stays. */
export const setDisk = (page: Page, disk: Partial<Disk>) => page.evaluate(disk => { Object.assign(window.disk, disk) }, disk)

const insert = () => {
  const disk: Disk = { size: 1e12, estimate: 'plenty', fails: 'at the end', late: 0 }
  window.disk = disk
  const stored = new Map<string, { key: IDBValidKey, bytes: number }>()
  /** Bytes of each blob that is deleted and still counts, and how many writes were refused since that changed. */
  const deleted: number[] = []
  let refused = 0
  const used = () => [...stored.values()].reduce((sum, { bytes }) => sum + bytes, deleted.reduce((sum, bytes) => sum + bytes, 0))
  const refuse = () => {
    if (++refused < disk.late) return
    refused = 0
    deleted.shift()
  }
  StorageManager.prototype.estimate = async () => ({ usage: used(), quota: disk.estimate === 'true' ? disk.size : 1e12 })

  const { put, delete: remove, clear, get } = IDBObjectStore.prototype
  /** How many writes each transaction has seen. */
  const writes = new WeakMap<IDBTransaction, number>()

  /** Undoes the transaction once nothing more is asked of it. */
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
    if (!(value instanceof Blob)) return put.call(this, value, key)
    const isFull = used() + value.size > disk.size
    const error = new DOMException('the disk is full', 'QuotaExceededError')
    if (isFull) refuse()
    if (isFull && disk.fails === 'at once') throw error
    const request = put.call(this, value, key)
    if (isFull) {
      fail(this, error)
    } else {
      const name = JSON.stringify(key)
      stored.set(name, { key: key!, bytes: value.size })
      this.transaction.addEventListener('abort', () => stored.delete(name))
    }
    return request
  }
  IDBObjectStore.prototype.delete = function (query) {
    const range = query instanceof IDBKeyRange ? query : IDBKeyRange.only(query)
    if (this.name === 'chunks') forget(this, key => range.includes(key))
    return remove.call(this, query)
  }
  IDBObjectStore.prototype.clear = function () {
    if (this.name === 'chunks') forget(this, () => true)
    return clear.call(this)
  }
}
