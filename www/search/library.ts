// The texts of the page and their index. This file knows nothing of the page.
import type { BitNet } from 'tritloom'
import { createIndex, deleteIndex, type Found, type IndexedText, type IndexProgress, type SearchIndex } from 'tritloom/search'

/** Where a text is from. */
export interface Origin {
  kind: 'documentation' | 'file'
  /** The document or the file, and the heading in a document. */
  title: string
}

/** A file's text, as far as this page can tell; undefined for pictures and other bytes. */
async function textOf(file: File): Promise<string | undefined> {
  const text = await file.text()
  return text.includes('\0') || text.includes('\ufffd') ? undefined : text
}

/** The name of a model's index. */
const nameOf = ({ info: { name, bytes, pooling = 'mean' } }: BitNet): string =>
  `demo: ${name}, ${bytes} bytes, ${pooling}`

export class Library {
  #index: SearchIndex<Origin>

  private constructor(index: SearchIndex<Origin>) {
    this.#index = index
  }

  /** The library that a model has read. Each model has its own, because none can use that of another. */
  static async open(model: BitNet): Promise<Library> {
    const { pooling = 'mean' } = model.info
    return new Library(await createIndex<Origin>(model, { name: nameOf(model), pooling }))
  }

  /** Deletes the library of a model, which may be damaged. */
  static delete(model: BitNet): Promise<void> {
    return deleteIndex(nameOf(model))
  }

  get passages(): number {
    return this.#index.passages
  }

  /** The names of files that were read, and how many sections of documents. */
  get contents(): { files: string[], sections: number } {
    const ids = this.#index.ids()
    const files = ids.filter(id => id.startsWith(FILE)).map(id => id.slice(FILE.length))
    return { files, sections: ids.length - files.length }
  }

  /** Reads this project's documentation, and forgets sections that it has no more. */
  async readDocumentation(signal: AbortSignal, onProgress: (progress: IndexProgress, total: number) => void): Promise<void> {
    const { default: sections } = await import('virtual:documentation')
    const texts = sections.map(({ id, document, heading, text }): IndexedText<Origin> => {
      const title = heading === document ? document : `${document}: ${heading}`
      return { id: DOCUMENT + id, text, metadata: { kind: 'documentation', title } }
    })
    await this.#index.addMany(texts, { signal, onProgress: progress => onProgress(progress, texts.length) })
    const known = new Set(texts.map(({ id }) => id))
    await this.#index.remove(this.#index.ids().filter(id => id.startsWith(DOCUMENT) && !known.has(id)))
  }

  /** Reads files. Gives the names of those that are no texts. */
  async readFiles(
    files: readonly File[], signal: AbortSignal, onProgress: (progress: IndexProgress, total: number) => void
  ): Promise<string[]> {
    const unread: string[] = []
    async function* texts(): AsyncGenerator<IndexedText<Origin>> {
      for (const file of files) {
        const text = await textOf(file)
        if (text === undefined) unread.push(file.name)
        else yield { id: FILE + file.name, text, metadata: { kind: 'file', title: file.name } }
      }
    }
    await this.#index.addMany(texts(), { signal, onProgress: progress => onProgress(progress, files.length) })
    return unread
  }

  async forget(file: string): Promise<void> {
    await this.#index.remove(FILE + file)
  }

  async forgetAll(): Promise<void> {
    await this.#index.clear()
  }

  /** The best passages of texts of a kind, or of all. */
  search(query: string, kind: Origin['kind'] | ''): Promise<Found<Origin>[]> {
    return this.#index.search(query, kind ? { filter: origin => origin.kind === kind } : {})
  }

  close(): Promise<void> {
    return this.#index.close()
  }
}

/** The beginnings of ids. */
const FILE = 'file: '
const DOCUMENT = 'documentation: '
