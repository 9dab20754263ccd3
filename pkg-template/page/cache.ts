// The models that are stored on this device. Fetched when they are first asked for.
import { unlessAborted } from './abort.js'
import { absolute } from '../address.js'
import { signalOf } from '../check.js'
import { BitNetError, fetched } from '../error.js'
import { platform } from '../platform.js'
import type { Stored } from '../crate/wasm.js'
import type { AbortOptions, StoredModel, Verdict } from '../types.js'

/**
 * The models that are stored on this device, in the browser's own files and IndexedDB.
 *
 * In Node, Deno and Bun they are in a folder: `TRITLOOM_CACHE`, or one among the system's files of this
 * kind. Where there is no storage at all, `list` gives an empty list, `estimate` gives
 * zeros, `persist` gives false, `verify` rejects with `not-cached`, `missing` asks the server, and
 * the others do nothing. Each rejects with `network` if its script cannot be fetched.
 */
export interface ModelCache {
  /** Lists every stored model, including the stored parts of interrupted downloads. */
  list(): Promise<StoredModel[]>
  /**
   * Reads all that is stored of an address and compares it with the hashes that were stored with
   * it. Damaged parts are deleted, and the next load downloads them again. Loading a stored model
   * makes the same comparison.
   *
   * Rejects with `not-cached` if nothing is stored, with `bad-option` if `url` is not valid, and
   * with the reason of `signal`.
   */
  verify(url: string | URL, options?: AbortOptions): Promise<Verdict>
  /**
   * Gives the number of bytes that a load of an address would download: 0 if all of it is stored,
   * and `undefined` if the server does not say how long the file is. Fetches nothing of the model.
   *
   * Rejects with `bad-option` if `url` is not valid, and with the reason of `signal`.
   */
  missing(url: string | URL, options?: AbortOptions): Promise<number | undefined>
  /** Deletes all that is stored of an address. Rejects with `bad-option` if `url` is not valid. */
  delete(url: string | URL): Promise<void>
  /** Deletes everything that is stored. */
  clear(): Promise<void>
  /** Gives the bytes that this origin uses, and the bytes that the browser grants it. */
  estimate(): Promise<StorageEstimate>
  /**
   * Asks the browser not to delete stored models on its own. Gives whether the browser agrees. The
   * first load that stores a model asks too, once.
   */
  persist(): Promise<boolean>
}

/**
 * The compiled crate. Only the crate knows how models are stored. It is loaded when it is first needed, in the module
 * that a load takes: another one would be a megabyte more, and is missing without a network.
 */
export const crate = async (): Promise<Stored> => {
  const [glue, { onGpu, ready }, { chosen }] = await fetched(() =>
    Promise.all([import('../tritloom.js'), import('../crate/wasm.js'), import('../cpu/choose.js')]))
  // Where nothing can compute, models can still be listed and deleted.
  const { crate } = await chosen({}).catch(() => ({ crate: onGpu }))
  await ready(crate)
  return crate.stored ?? glue
}

const hasStorage = (): boolean => platform.disk !== undefined || globalThis.indexedDB !== undefined

export const cache: ModelCache = {
  list: async () => hasStorage() ? (await crate()).cacheList() : [],
  verify: async (url, options = {}) => {
    const [stored, signal] = [key(url), signalOf(options)]
    if (hasStorage()) {
      return unlessAborted(signal, async () => (await crate()).cacheVerify(stored, signal))
    }
    throw new BitNetError('not-cached', `${stored} is not stored: there is no IndexedDB here`)
  },
  missing: async (url, options = {}) => {
    const [stored, signal] = [key(url), signalOf(options)]
    return unlessAborted(signal, async () => {
      const { missing } = await fetched(() => import('./missing.js'))
      // If storage is blocked, nothing is stored, but models can still be loaded.
      const models = await cache.list().catch(() => [])
      return missing(stored, models, signal)
    })
  },
  delete: async url => {
    const stored = key(url)
    if (hasStorage()) await (await crate()).cacheDelete(stored)
  },
  clear: async () => {
    if (hasStorage()) await (await crate()).cacheClear()
  },
  // A frame without storage rejects this, and `persist` too.
  estimate: async () => {
    const { disk } = platform
    if (disk) {
      const [usage, free] = await Promise.all([disk.used(), disk.free()])
      return { usage, quota: usage + (free || 0) }
    }
    return (await globalThis.navigator?.storage?.estimate?.().catch(() => {})) ?? { usage: 0, quota: 0 }
  },
  persist: async () => {
    // There is no browser that deletes files by itself.
    if (platform.disk) return true
    return (await globalThis.navigator?.storage?.persist?.().catch(() => {})) ?? false
  }
}

/**
 * Where the page notes that it has asked. Some browsers ask the visitor, who should be asked only
 * once.
 */
const ASKED = 'tritloom-asked-to-persist'

/** Asks the browser not to delete models on its own, if this page has not asked before. */
export async function persistOnce(): Promise<void> {
  if (platform.disk) return
  try {
    if (localStorage.getItem(ASKED)) return
    localStorage.setItem(ASKED, 'yes')
    if (!await navigator.storage.persisted()) await navigator.storage.persist()
  } catch {
    // A frame without storage has nothing to persist, and a worker may not ask.
  }
}

/** The address under which `load` stores a model: absolute, without a fragment. */
function key(url: string | URL): string {
  const address = absolute('url', url)
  address.hash = ''
  return address.href
}
