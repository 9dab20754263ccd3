// `tritloom/search`: texts of a page searched by meaning, with a model that embeds. See docs/SEARCH.md.
import { checkText } from './check.js'
import { IndexedDbStorage } from './search/indexed-db.js'
import { MemoryStorage } from './search/memory.js'
import { SearchIndex, settingsOf } from './search/search-index.js'
import type { Embedder, IndexOptions } from './search/types.js'

/**
 * Opens the index with a name, or makes it. It may be used while the model lives, and until `close`.
 *
 * Rejects with `bad-option` for wrong options; `index-mismatch` if the index was made by another model, or with another
 * pooling or number of dimensions; `index-damaged` if what is stored is not what was stored; `storage` where there is
 * no IndexedDB; `missing-feature` without WebAssembly's SIMD; and with the errors of `model.embed`.
 */
export async function createIndex<M = unknown>(model: Embedder, options: IndexOptions = {}): Promise<SearchIndex<M>> {
  const { name, storage: kind, ...settings } = settingsOf(model, options)
  const storage = kind === 'memory' ? new MemoryStorage() : await IndexedDbStorage.open(name)
  try {
    return await SearchIndex.open<M>(model, settings, storage)
  } catch (error) {
    storage.close()
    throw error
  }
}

/** Deletes the index with a name, also a damaged one. Those that have it open can use it no more: `storage`. */
export async function deleteIndex(name = 'index'): Promise<void> {
  checkText('name', name)
  await IndexedDbStorage.delete(name)
}

export type { SearchIndex } from './search/search-index.js'
export type {
  AddManyOptions, Embedder, Found, IndexedText, IndexOptions, IndexProgress, SearchOptions
} from './search/types.js'
