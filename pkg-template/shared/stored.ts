// A stored model as one blob, to be offered to other sites. Everything else about stored models is in the
// crate, which works in another thread: src/web/store/records.rs has the layout that this reads.
import { fileNamed } from '../threads/disk.js'
import { digitsOf } from './storage.js'

/** The fields of a record that are needed here. */
interface StoredRecord {
  id: string
  url: string
  complete: boolean
  sha256?: string
  stored: { key: number, start: number, length: number, onDisk: boolean }[]
}

/**
 * The file of `url` that has the hash with these digits; undefined if it is not stored whole. Its bytes
 * are read when they are needed.
 */
export async function storedFile(url: string, digits: string): Promise<Blob | undefined> {
  const opening = indexedDB.open('tritloom')
  // If nothing is stored any more, this must not make a database without a layout.
  opening.onupgradeneeded = () => opening.transaction!.abort()
  const database = await answer(opening)
  try {
    const stores = database.transaction(['files', 'parts'])
    const records = await answer<StoredRecord[]>(stores.objectStore('files').getAll())
    const record = records.find(({ url: of, complete, sha256 }) =>
      of === url && complete && sha256 && digitsOf(sha256) === digits)
    if (!record) return undefined
    const parts = stores.objectStore('parts')
    const inParts = new Map(await Promise.all(record.stored.filter(({ onDisk }) => !onDisk).map(
      async ({ key }) => [key, await answer<Blob>(parts.get([record.id, key]))] as const
    )))
    const onDisk = inParts.size < record.stored.length ? await fileNamed(record.id) : undefined
    return new Blob(record.stored.map(({ key, start, length }) =>
      inParts.get(key) ?? onDisk!.slice(start, start + length)))
  } finally {
    database.close()
  }
}

const answer = <T>(request: IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result)
  request.onerror = () => reject(request.error)
})
