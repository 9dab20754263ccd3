import type { StoredModel } from './types.js'

/** Models stored on this device. */
export interface ModelCache {
  /** Every stored model, and every part of one that a download left behind. */
  list(): Promise<StoredModel[]>
  /** Deletes what is stored of an address. */
  delete(url: string | URL): Promise<void>
  /** Deletes everything. */
  clear(): Promise<void>
  /** What the browser grants this origin, and what is used of it. */
  estimate(): Promise<StorageEstimate>
  /** Asks the browser not to delete on its own; says whether it agrees. */
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
  delete: async url => (await crate()).cacheDelete(address(url)),
  clear: async () => (await crate()).cacheClear(),
  estimate: async () => (await navigator.storage?.estimate()) ?? {},
  persist: async () => (await navigator.storage?.persist?.()) ?? false
}

/** As `load` stores it: absolute, without a fragment. */
function address(url: string | URL): string {
  const absolute = new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href)
  absolute.hash = ''
  return absolute.href
}
