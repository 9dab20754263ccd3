// The records of an index, and the storage that keeps them.
import { BitNetError } from '../error.js'
import type { Pooling } from '../types.js'
import type { Block } from './rows.js'

/** The layout of all that is stored. One with another number is not read. */
export const LAYOUT = 1

/** The model that an index is of, and how often it has changed. */
export interface About {
  layout: number
  /** How often the index has changed. */
  edition: number
  /** The facts of the model's file. */
  model: { name: string, architecture: string, parameters: number, bytes: number }
  /** The hash of the model's adapters. An index of an earlier version has none. */
  adapters?: string
  pooling: Pooling
  /** Vectors of texts that are always the same: those of another model differ. */
  probes: Float32Array[]
}

/** A text, without its passages. */
export interface StoredDocument {
  id: string
  metadata: unknown
  /** A hash of the text. */
  mark: string
  /** Where its passages are, in their order. */
  slots: number[]
}

export interface StoredPassage {
  slot: number
  id: string
  text: string
  vector: Float32Array
}

export interface StoredBlock extends Block {
  number: number
  /** A hash of the others. */
  sum: number
}

/** The changes of one edition. They are stored all together or not at all. */
export interface Changes {
  documents: StoredDocument[]
  /** The ids of documents that are gone. */
  removed: string[]
  passages: StoredPassage[]
  /** The slots of passages that are gone. */
  freed: number[]
  blocks: StoredBlock[]
}

/** All that is stored of an index but its passages; `about` is undefined if nothing is. */
export interface Stored {
  about: About | undefined
  documents: StoredDocument[]
}

/** Each call sees one edition. Failures are `storage`, `storage-full`, or `index-damaged` for another layout. */
export interface IndexStorage {
  /** Gives `onBlock` each block as it is read, so that they are in memory only once. */
  read(onBlock: (block: StoredBlock) => void): Promise<Stored>
  /** The passages of slots; undefined for those that are not there. */
  passages(slots: readonly number[]): Promise<{ edition: number, passages: (StoredPassage | undefined)[] }>
  /** Stores the changes, if the edition before them is stored; else gives false. */
  write(about: About, changes: Changes): Promise<boolean>
  close(): void
}

/** `index-damaged`, with the reason. */
export const damaged = (why: string, cause?: unknown): BitNetError =>
  new BitNetError('index-damaged', `the index is damaged: ${why}; delete it, and add its texts again`, { cause })
