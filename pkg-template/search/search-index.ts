// An index of texts, to be searched by meaning.
import {
  badOption, checkCallback, checkChoice, checkCount, checkOptions, checkSignal, checkText, report
} from '../check.js'
import { BitNetError } from '../error.js'
import { split } from '../passages.js'
import type { AbortOptions, EmbedOptions, Pooling } from '../types.js'
import { Contents } from './contents.js'
import type { Prepared } from './contents.js'
import { aboutOf, checkAbout, checkAdapters, checkVectors, cosine } from './identity.js'
import type { About, IndexStorage } from './storage.js'
import type { AddManyOptions, Embedder, Found, IndexedText, IndexOptions, IndexProgress, SearchOptions } from './types.js'

const NAMES = ['name', 'storage', 'pooling', 'dimensions', 'instruction', 'passageLength']

/** Passages, or texts, that are embedded and stored together. They fill a few passes of a model. */
const AT_ONCE = 256

/** Passages whose own vectors a search reads at once, and the most that it reads, unless twice `k` is more. */
const READ_AT_ONCE = 64
const MAX_READ = 2048

/** Tokens that a model may put around a text. */
const SLACK = 8
/** The most bytes of UTF-8 of a code unit, each of which is a token at worst. */
const MAX_BYTES = 3

/** The options that an index needs when it is open. */
interface Settings {
  pooling: Pooling
  dimensions: number | undefined
  instruction: string | undefined
  passageLength: number
}

/** Checks the options of `createIndex`. */
export function settingsOf(model: Embedder, options: IndexOptions): Settings & { name: string, storage: string } {
  checkOptions(options, NAMES)
  const {
    name = 'index', storage = 'indexeddb', pooling = model?.info?.pooling, dimensions, instruction, passageLength = 800
  } = options
  checkText('name', name)
  checkChoice('storage', storage, ['indexeddb', 'memory'])
  if (typeof model?.embed !== 'function') throw badOption('model', 'must have a function `embed`')
  if (pooling === undefined) throw badOption('pooling', 'must be given, because the file of the model says none')
  if (dimensions !== undefined) checkCount('dimensions', dimensions)
  if (instruction !== undefined) checkText('instruction', instruction)
  const isLength = Number.isInteger(passageLength) && passageLength >= 64 && passageLength <= 65_536
  if (!isLength) throw badOption('passageLength', 'must be an integer from 64 to 65536')
  return { name, storage, pooling, dimensions, instruction, passageLength }
}

/**
 * Texts that are searched by meaning. `createIndex` makes it. Its vectors are in memory as int8, and in the storage as
 * they are; a search gives what the vectors as they are would give.
 *
 * All calls reject with `disposed` after `close`, with the model's own errors, with `storage` or `storage-full`, and with
 * `index-damaged` if what is stored is not what was stored. Each change is stored whole or not at all. Other pages may use
 * the same index at once.
 */
export class SearchIndex<M = unknown> {
  #model: Embedder
  #settings: Settings
  #storage: IndexStorage
  #ours: About
  #contents: Contents
  #isClosed = false
  /** The end of the last change. */
  #last: Promise<unknown> = Promise.resolve()

  private constructor(model: Embedder, settings: Settings, storage: IndexStorage, ours: About, contents: Contents) {
    this.#model = model
    this.#settings = settings
    this.#storage = storage
    this.#ours = ours
    this.#contents = contents
  }

  /** @internal Opens what a storage has, or begins an index there. */
  static async open<M>(model: Embedder, settings: Settings, storage: IndexStorage): Promise<SearchIndex<M>> {
    const embed = (texts: string[]) => model.embed(texts, vectorOptions(settings))
    const ours = await aboutOf(model, settings.pooling, embed)
    const contents = await Contents.read(storage, ours, about => checkAbout(about, ours))
    const index = new SearchIndex<M>(model, settings, storage, ours, contents)
    // It is kept from now on, even without texts.
    if (contents.about.edition === 0) await index.#change([], [])
    return index
  }

  /** The number of texts, as of the last call. */
  get size(): number {
    return this.#contents.documents.size
  }

  /** The number of passages of all texts. */
  get passages(): number {
    return this.#contents.passages
  }

  /** The ids of all texts. */
  ids(): string[] {
    return [...this.#contents.documents.keys()]
  }

  has(id: string): boolean {
    return this.#contents.documents.has(id)
  }

  /**
   * Adds a text, or replaces the one with this id. If its text is the same, only its metadata are replaced. A text of
   * white space alone is kept and never found. To add many texts, `addMany` is much faster.
   */
  add(id: string, text: string, metadata?: M, options: AbortOptions = {}): Promise<void> {
    return this.addMany([{ id, text, ...(metadata === undefined ? {} : { metadata }) }], options)
  }

  /**
   * Adds texts, as `add` does, some hundred passages at a time. They may come from a generator. If it rejects, such as
   * with the reason of `signal`, the index has the texts that were done. The same call again only embeds the others.
   *
   * Rejects with `bad-option` for a text that is none, when it comes to it.
   */
  async addMany(
    texts: Iterable<IndexedText<M>> | AsyncIterable<IndexedText<M>>, options: AddManyOptions = {}
  ): Promise<void> {
    checkOptions(options, ['signal', 'onProgress'])
    const { signal, onProgress } = options
    checkSignal(signal)
    checkCallback('onProgress', onProgress)
    const isList = (texts as Iterable<unknown>)?.[Symbol.iterator] ?? (texts as AsyncIterable<unknown>)?.[Symbol.asyncIterator]
    if (!isList || typeof texts === 'string') throw badOption('texts', 'must be an array, or another iterable')
    const progress: IndexProgress = { done: 0, unchanged: 0, passages: 0 }
    let waiting = new Map<string, Waiting>()
    let passages = 0
    const store = async () => {
      const some = [...waiting.values()]
      waiting = new Map()
      passages = 0
      const before = progress.passages
      const onPassages = (done: number) => {
        progress.passages = before + done
        report(onProgress, { ...progress })
      }
      await this.#store(some, signal, onPassages)
      progress.done += some.length
      progress.unchanged += some.filter(({ texts }) => !texts).length
      report(onProgress, { ...progress })
    }
    let n = 0
    for await (const given of texts) {
      signal?.throwIfAborted()
      this.#checkOpen()
      const { id, text, metadata } = checkedText(given, n++)
      // The later of two counts, also where the first has not been stored yet.
      if (waiting.has(id)) await store()
      const mark = markOf(text)
      const isThere = this.#contents.documents.get(id)?.mark === mark
      const texts = isThere ? undefined : await this.#split(text, signal)
      waiting.set(id, { id, metadata, mark, text, texts })
      passages += texts?.length ?? 0
      if (passages >= AT_ONCE || waiting.size >= AT_ONCE) await store()
    }
    signal?.throwIfAborted()
    this.#checkOpen()
    if (waiting.size > 0) await store()
  }

  /** Removes texts. Ids that are not there are no error. */
  async remove(ids: string | readonly string[]): Promise<void> {
    const all = typeof ids === 'string' ? [ids] : ids
    if (!Array.isArray(all) || !all.every(id => typeof id === 'string')) throw badOption('ids', 'must be a string, or an array of strings')
    this.#checkOpen()
    await this.#change([], all)
  }

  /** Removes all texts. */
  async clear(): Promise<void> {
    this.#checkOpen()
    await this.#refresh()
    await this.#change([], this.ids())
  }

  /**
   * The passages whose meaning is closest to that of `query`, the closest first. Of passages with the same score the one that
   * is stored first comes first.
   *
   * Rejects with `bad-option` for a query that is empty and for wrong options, and with the reason of `signal`.
   */
  async search(query: string, options: SearchOptions<M> = {}): Promise<Found<M>[]> {
    checkText('query', query)
    if (query.trim() === '') throw badOption('query', 'must not be empty')
    checkOptions(options, ['k', 'filter', 'signal'])
    const { k = 10, filter, signal } = options
    checkCount('k', k)
    if (k === 0) throw badOption('k', 'must be at least 1')
    checkCallback('filter', filter)
    checkSignal(signal)
    this.#checkOpen()
    const [vector] = await this.#embed([query], this.#purpose(), signal)
    for (;;) {
      signal?.throwIfAborted()
      this.#checkOpen()
      const found = await this.#best(vector!, k, filter).catch(error => {
        this.#checkOpen() // The storage of a closed index fails.
        throw error
      })
      if (found) return found
      await this.#refresh()
    }
  }

  /** Lets go of the storage, after the changes that have begun. All that is stored stays. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#last
    this.#storage.close()
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new BitNetError('disposed', 'the index has been closed')
  }

  /** The purpose of a query's vector. */
  #purpose(): EmbedOptions {
    const { instruction } = this.#settings
    if (instruction !== undefined) return { instruction }
    // A model that was not made for it was trained with no instruction, which would only hide the query.
    return { task: this.#model.info.embeds ? 'query' : 'document' }
  }

  /** The passages of a text, each of which fits into the model's context. */
  async #split(text: string, signal: AbortSignal | undefined): Promise<string[]> {
    const room = this.#model.info.contextLength - SLACK
    const share = async (passage: string) => {
      const length = passage.length / this.#settings.passageLength
      if (length > 1 || MAX_BYTES * passage.length <= room) return length
      return Math.max(length, await this.#model.countTokens(passage) / room)
    }
    const passages = await split(text, share, signal ?? new AbortController().signal)
    // An abort ends the split early.
    signal?.throwIfAborted()
    return passages
  }

  async #embed(texts: string[], options: EmbedOptions, signal: AbortSignal | undefined): Promise<Float32Array[]> {
    const vectors = await this.#model.embed(texts, {
      ...vectorOptions(this.#settings), ...options, ...(signal && { signal })
    })
    // Calls wait for their turn. Meanwhile `setAdapters` may have changed the model.
    checkAdapters(this.#ours, this.#model.adaptersHash)
    checkVectors(vectors, texts.length, this.#contents.rows.dimensions)
    return vectors
  }

  async #store(some: Waiting[], signal: AbortSignal | undefined, onPassages: (done: number) => void): Promise<void> {
    const texts = some.flatMap(({ texts }) => texts ?? [])
    const onProgress = ({ done }: { done: number }) => onPassages(done)
    const vectors = texts.length > 0 ? await this.#embed(texts, { onProgress }, signal) : []
    signal?.throwIfAborted()
    this.#checkOpen()
    let next = 0
    const prepared = some.map(({ id, metadata, mark, texts }) =>
      ({ id, metadata, mark, passages: texts?.map(text => ({ text, vector: vectors[next++]! })) }))
    const gone = await this.#change(prepared, [])
    // Another page has removed or replaced texts that were to stay.
    const again = some.filter(({ id }) => gone.includes(id))
    for (const one of again) one.texts = await this.#split(one.text, signal)
    if (again.length > 0) await this.#store(again, signal, onPassages)
  }

  /**
   * Stores texts and removes others. Gives the ids of texts that were to keep their passages, and are not
   * there any more: nothing of them is stored.
   */
  #change(texts: readonly Prepared[], removed: readonly string[]): Promise<string[]> {
    return this.#serial(async () => {
      for (;;) {
        const contents = this.#contents
        const { documents, about: before } = contents
        const isGone = ({ id, mark, passages }: Prepared) => !passages && documents.get(id)?.mark !== mark
        const changes = contents.plan(texts.filter(text => !isGone(text)), removed.filter(id => documents.has(id)))
        const about = { ...before, edition: before.edition + 1 }
        const isNothing = changes.documents.length === 0 && changes.removed.length === 0 && before.edition > 0
        if (isNothing || await this.#storage.write(about, changes)) {
          if (!isNothing) contents.apply(about, changes)
          return texts.filter(isGone).map(({ id }) => id)
        }
        await this.#read()
      }
    })
  }

  /** Reads the index again if another page has changed it. */
  #refresh(): Promise<void> {
    return this.#serial(async () => {
      const { edition } = await this.#storage.passages([])
      if (edition !== this.#contents.about.edition) await this.#read()
    })
  }

  async #read(): Promise<void> {
    this.#contents = await Contents.read(this.#storage, this.#ours, about => checkAbout(about, this.#ours))
  }

  /** The best passages; undefined if the index has changed meanwhile. */
  async #best(query: Float32Array, k: number, filter: SearchOptions<M>['filter']): Promise<Found<M>[] | undefined> {
    const contents = this.#contents
    const { edition } = contents.about
    const wanted = new Map<string, boolean>()
    const isWanted = (slot: number) => {
      const owner = contents.ownerOf(slot)
      if (!owner) return false
      if (!filter) return true
      const { id, metadata } = owner
      if (!wanted.has(id)) wanted.set(id, !!filter(metadata as M, id))
      return wanted.get(id)!
    }
    const candidates = contents.rows.candidates(query, k, isWanted)
    const most = Math.max(MAX_READ, 2 * k)
    const best: { slot: number, score: number, text: string }[] = []
    for (let n = 0; n < Math.min(candidates.length, most); n += READ_AT_ONCE) {
      // No later one can be better.
      if (best.length === k && candidates[n]!.most < best[k - 1]!.score) break
      const some = candidates.slice(n, n + READ_AT_ONCE)
      const read = await this.#storage.passages(some.map(({ slot }) => slot))
      if (read.edition !== edition || contents.about.edition !== edition) return undefined
      some.forEach(({ slot }, i) => {
        const passage = read.passages[i]
        contents.whole(slot, passage)
        best.push({ slot, score: cosine(query, passage!.vector), text: passage!.text })
      })
      best.sort((a, b) => b.score - a.score || a.slot - b.slot)
      best.length = Math.min(best.length, k)
    }
    return best.map(({ slot, score, text }) => {
      const { id, metadata, slots } = contents.ownerOf(slot)!
      return { id, metadata: structuredClone(metadata) as M, text, passage: slots.indexOf(slot), score }
    })
  }

  /** Runs a change after those before it. */
  #serial<T>(job: () => Promise<T>): Promise<T> {
    const result = this.#last.then(job)
    this.#last = result.catch(() => {})
    return result
  }
}

/** A text whose passages wait to be embedded. */
interface Waiting {
  id: string
  metadata: unknown
  mark: string
  text: string
  /** Its passages; undefined if those that are stored stay. */
  texts: string[] | undefined
}

const vectorOptions = ({ pooling, dimensions }: Settings): EmbedOptions =>
  ({ pooling, ...(dimensions === undefined ? {} : { dimensions }) })

function checkedText(given: IndexedText, n: number): IndexedText {
  const { id, text, metadata } = given ?? {}
  checkText(`texts[${n}].id`, id)
  checkText(`texts[${n}].text`, text)
  try {
    // Later changes of the caller's value count no more.
    return { id: id!, text: text!, metadata: structuredClone(metadata) }
  } catch {
    throw badOption(`texts[${n}].metadata`, 'cannot be cloned')
  }
}

/** A hash of a text of 53 bits, and its length. */
function markOf(text: string): string {
  let [a, b] = [0xdeadbeef, 0x41c6ce57]
  for (let n = 0; n < text.length; n++) {
    const unit = text.charCodeAt(n)
    a = Math.imul(a ^ unit, 2_654_435_761)
    b = Math.imul(b ^ unit, 1_597_334_677)
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909)
  return `${text.length}-${(b >>> 0).toString(16)}-${(a >>> 0).toString(16)}`
}
