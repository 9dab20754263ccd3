// Keeps an index for as long as the page lives.
import type { About, Changes, IndexStorage, Stored, StoredBlock, StoredDocument, StoredPassage } from './storage.js'

export class MemoryStorage implements IndexStorage {
  about: About | undefined
  documents = new Map<string, StoredDocument>()
  stored = new Map<number, StoredPassage>()
  blocks = new Map<number, StoredBlock>()

  async read(onBlock: (block: StoredBlock) => void): Promise<Stored> {
    // The reader keeps what it is given, and changes it.
    const { about, documents, blocks } = structuredClone({ about: this.about, documents: this.documents, blocks: this.blocks })
    blocks.forEach(onBlock)
    return { about, documents: [...documents.values()] }
  }

  async passages(slots: readonly number[]) {
    return { edition: this.about?.edition ?? 0, passages: slots.map(slot => this.stored.get(slot)) }
  }

  async write(about: About, changes: Changes): Promise<boolean> {
    if ((this.about?.edition ?? 0) !== about.edition - 1) return false
    this.about = about
    for (const id of changes.removed) this.documents.delete(id)
    for (const slot of changes.freed) this.stored.delete(slot)
    for (const document of changes.documents) this.documents.set(document.id, document)
    for (const passage of changes.passages) this.stored.set(passage.slot, passage)
    for (const block of changes.blocks) this.blocks.set(block.number, block)
    return true
  }

  close(): void {}
}
