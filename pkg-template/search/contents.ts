// The part of an index that is in memory: its rows, and which text each is of.
import { emptyBlock, Rows, ROWS, writeRow } from './rows.js'
import type { Block } from './rows.js'
import { damaged } from './storage.js'
import type { About, Changes, IndexStorage, StoredBlock, StoredDocument, StoredPassage } from './storage.js'

/** A text that is to be stored. */
export interface Prepared {
  id: string
  metadata: unknown
  mark: string
  /** Undefined if those that are stored stay. */
  passages: { text: string, vector: Float32Array }[] | undefined
}

export class Contents {
  about: About
  readonly rows: Rows
  readonly documents = new Map<string, StoredDocument>()
  /** The document of each slot; undefined if it is free. */
  readonly #owners: (StoredDocument | undefined)[] = []
  passages = 0

  private constructor(about: About, rows: Rows) {
    this.about = about
    this.rows = rows
  }

  /**
   * Reads what is stored. `check` refuses an index of another model. Gives an empty index like `ours` if nothing is
   * stored. Rejects with `index-damaged`.
   */
  static async read(storage: IndexStorage, ours: About, check: (about: About) => void): Promise<Contents> {
    const dimensions = ours.probes[0]!.length
    const rows = await Rows.create(dimensions)
    // An index of another model is told apart before its blocks are found to be of another form.
    const like = emptyBlock(dimensions)
    let fault: string | undefined
    let number = 0
    const { about, documents } = await storage.read(block => {
      fault ??= faultOf(block, number, like)
      number += 1
      if (!fault) rows.setBlock(block.number, block)
    })
    if (about) check(about)
    else if (number > 0 || documents.length > 0) throw damaged('what it is of is missing')
    if (fault) throw damaged(fault)
    const contents = new Contents(about ?? ours, rows)
    for (const document of documents) contents.#take(document)
    return contents
  }

  ownerOf(slot: number): StoredDocument | undefined {
    return this.#owners[slot]
  }

  /** The changes by which texts are stored, in place of those with the same ids, and `removed` are not. */
  plan(texts: readonly Prepared[], removed: readonly string[]): Changes {
    const changes: Changes = { documents: [], removed: [...removed], passages: [], freed: [], blocks: [] }
    const blocks = new Map<number, Block>()
    const blockOf = (slot: number) => {
      const number = Math.floor(slot / ROWS)
      const block = blocks.get(number) ?? this.rows.block(number)
      blocks.set(number, block)
      return block
    }
    const free = (id: string) => {
      for (const slot of this.documents.get(id)?.slots ?? []) {
        blockOf(slot).scales[slot % ROWS] = 0
        changes.freed.push(slot)
      }
    }
    removed.forEach(free)
    let next = 0
    for (const { id, metadata, mark, passages } of texts) {
      if (!passages) {
        changes.documents.push({ id, metadata, mark, slots: this.documents.get(id)!.slots })
        continue
      }
      free(id)
      const slots = passages.map(({ text, vector }) => {
        while (this.#owners[next]) next += 1
        const slot = next++
        writeRow(blockOf(slot), slot % ROWS, vector)
        changes.passages.push({ slot, id, text, vector })
        return slot
      })
      changes.documents.push({ id, metadata, mark, slots })
    }
    for (const [number, block] of [...blocks].sort(([a], [b]) => a - b)) {
      changes.blocks.push({ ...block, number, sum: sumOf(block) })
    }
    return changes
  }

  /** Makes the changes that have been stored. */
  apply(about: About, { documents, removed, blocks }: Changes): void {
    this.about = about
    for (const block of blocks) this.rows.setBlock(block.number, block)
    for (const id of [...removed, ...documents.map(({ id }) => id)]) {
      const { slots } = this.documents.get(id) ?? { slots: [] }
      for (const slot of slots) this.#owners[slot] = undefined
      this.passages -= slots.length
      this.documents.delete(id)
    }
    for (const document of documents) this.#take(document)
  }

  /** The document of a passage that was read. Throws `index-damaged` if it is not the one that was stored. */
  whole(slot: number, passage: StoredPassage | undefined): StoredDocument {
    const owner = this.#owners[slot]!
    const isWhole = passage && passage.id === owner.id && typeof passage.text === 'string' &&
      passage.vector instanceof Float32Array && passage.vector.length === this.rows.dimensions &&
      this.rows.isOf(slot, passage.vector)
    if (!isWhole) throw damaged(`a passage of \`${owner.id}\` is missing or has changed`)
    return owner
  }

  #take(document: StoredDocument): void {
    const { id, mark, slots } = document
    const isWhole = typeof id === 'string' && typeof mark === 'string' && Array.isArray(slots) &&
      slots.every(slot => this.rows.isUsed(slot) && !this.#owners[slot]) && new Set(slots).size === slots.length
    if (!isWhole) throw damaged(`the text \`${String(id)}\` is not there as it was stored`)
    for (const slot of slots) this.#owners[slot] = document
    this.passages += slots.length
    this.documents.set(id, document)
  }
}

/** Why a block cannot be the one of this number; undefined if it is. `like` has its form. */
function faultOf(block: StoredBlock, number: number, like: Block): string | undefined {
  const isLike = block.number === number && (['codes', 'scales', 'errors'] as const).every(name =>
    block[name]?.constructor === like[name].constructor && block[name].length === like[name].length)
  if (!isLike) return `block ${number} of its vectors is not there as it was stored`
  if (sumOf(block) !== block.sum) return `block ${number} of its vectors has changed`
  return undefined
}

/** A hash that finds damage. */
function sumOf({ codes, scales, errors }: Block): number {
  let sum = 0x811c9dc5
  for (const { buffer, byteOffset, byteLength } of [codes, scales, errors]) {
    for (const word of new Int32Array(buffer, byteOffset, byteLength / 4)) sum = Math.imul(sum ^ word, 0x01000193)
  }
  return sum
}
