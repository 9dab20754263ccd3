// All conversations: a list in memory, with what is stored behind it and in other tabs. This file knows nothing of the page.
import type { Conversation, Turn, Turns } from './conversation.ts'
import type { Exchanged } from './exchange.ts'
import type { Store } from './store.ts'

/** The news of a library for the page. */
export interface LibraryEvents {
  /** The list has changed. `elsewhere` is the conversation that another tab has changed. */
  onChange(elsewhere?: string): void
  /** Something could not be stored, and stays in the memory of this page. */
  onUnstored(error: unknown): void
}

export class Library {
  readonly conversations = new Map<string, Conversation>()
  #store: Store
  #events: LibraryEvents
  #tabs = new BroadcastChannel('tritloom-chat')

  constructor(store: Store, events: LibraryEvents) {
    this.#store = store
    this.#events = events
    this.#tabs.onmessage = async ({ data }: MessageEvent<string>) => {
      await this.read()
      events.onChange(data)
    }
  }

  get isLasting(): boolean {
    return this.#store.isLasting
  }

  /** Reads the list again. */
  async read(): Promise<void> {
    if (!this.isLasting) return
    const stored = await this.#store.conversations()
    this.conversations.clear()
    for (const conversation of stored) this.conversations.set(conversation.id, conversation)
  }

  async turns(conversation: string): Promise<Turns> {
    const turns = await this.#store.turns(conversation)
    return new Map(turns.map(turn => [turn.id, turn]))
  }

  allTurns(): Promise<Turn[]> {
    return this.#store.turns()
  }

  /** Adds a conversation, or changes one, with turns. */
  async save(conversation: Conversation, ...turns: Turn[]): Promise<void> {
    this.conversations.set(conversation.id, conversation)
    this.#events.onChange()
    await this.#kept(conversation.id, () => this.#store.put([conversation], turns))
  }

  /** Stores a turn as it is now, unless its conversation was deleted. */
  async saveTurn(turn: Turn): Promise<void> {
    if (this.conversations.has(turn.conversation)) await this.#kept(turn.conversation, () => this.#store.put([], [turn]))
  }

  async deleteTurns(conversation: string, ids: readonly string[]): Promise<void> {
    await this.#kept(conversation, () => this.#store.deleteTurns(ids))
  }

  /** Deletes a conversation. Returns it, so that it can be put back. */
  async delete(id: string): Promise<Exchanged | undefined> {
    const conversation = this.conversations.get(id)
    if (!conversation) return undefined
    this.conversations.delete(id)
    this.#events.onChange()
    const turns = [...(await this.turns(id)).values()]
    await this.#kept(id, () => this.#store.delete(id))
    return { conversation, turns }
  }

  async #kept(conversation: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
      this.#tabs.postMessage(conversation)
    } catch (error) {
      this.#events.onUnstored(error)
    }
  }
}
