import type { StoredModel, Verdict } from './types.js'

/** Models stored on this device. */
export interface ModelCache {
  /** Every stored model, and every part of one that a download left behind. */
  list(): Promise<StoredModel[]>
  /**
   * Reads all that is stored of an address and compares it with the hashes it was stored with;
   * what is damaged is deleted. Fails with `not-cached` where there is nothing. Every load from
   * the storage compares them too, and fetches again what is damaged.
   */
  verify(url: string | URL): Promise<Verdict>
  /** Deletes what is stored of an address. */
  delete(url: string | URL): Promise<void>
  /** Deletes everything. */
  clear(): Promise<void>
  /** What the browser grants this origin, and what is used of it. */
  estimate(): Promise<StorageEstimate>
  /**
   * Asks the browser not to delete on its own; says whether it agrees. The first load that stores
   * a model asks too, once.
   */
  persist(): Promise<boolean>
}

// The layout of the storage is known to the crate alone, which is loaded when first needed.
const crate = async () => {
  const [glue, { ready }] = await Promise.all([import('./ternlight.js'), import('./wasm.js')])
  await ready()
  return glue
}

export const cache: ModelCache = {
  list: async () => (await crate()).cacheList(),
  verify: async url => (await crate()).cacheVerify(address(url)),
  delete: async url => (await crate()).cacheDelete(address(url)),
  clear: async () => (await crate()).cacheClear(),
  estimate: async () => (await navigator.storage?.estimate()) ?? {},
  persist: async () => (await navigator.storage?.persist?.()) ?? false
}

/** Set once the browser was asked: some of them ask the visitor, who is not to be asked again. */
const ASKED = 'ternlight-asked-to-persist'

/** Asks the browser not to delete models on its own, unless it was asked before. */
export async function persistOnce(): Promise<void> {
  try {
    if (localStorage.getItem(ASKED)) return
    localStorage.setItem(ASKED, 'yes')
    if (!await navigator.storage.persisted()) await navigator.storage.persist()
  } catch {
    // No storage in this frame, or a worker's thread, which may not ask: nothing to persist.
  }
}

/** As `load` stores it: absolute, without a fragment. */
function address(url: string | URL): string {
  const absolute = new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href)
  absolute.hash = ''
  return absolute.href
}
