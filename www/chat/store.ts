// Where conversations are kept: IndexedDB, or the memory of the page where the browser refuses that.
import type { Conversation, Turn } from './conversation.ts'

export interface Store {
  /** Whether what is kept is still there after the page is closed. */
  isLasting: boolean
  conversations(): Promise<Conversation[]>
  /** The turns of a conversation, or all turns. */
  turns(conversation?: string): Promise<Turn[]>
  /** Keeps these, in place of those with the same ids. */
  put(conversations: readonly Conversation[], turns: readonly Turn[]): Promise<void>
  /** Deletes turns by their ids. */
  deleteTurns(ids: readonly string[]): Promise<void>
  /** Deletes a conversation with all its turns. */
  delete(conversation: string): Promise<void>
}

const NAME = 'tritloom-chat'

/** Opens the store. */
export async function openStore(): Promise<Store> {
  try {
    return lasting(await openDatabase())
  } catch {
    return inMemory()
  }
}

const done = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })

function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open(NAME, 1)
  request.onupgradeneeded = () => {
    request.result.createObjectStore('conversations', { keyPath: 'id' })
    request.result.createObjectStore('turns', { keyPath: 'id' }).createIndex('conversation', 'conversation')
  }
  return done(request)
}

function lasting(database: IDBDatabase): Store {
  // Another tab has a newer page, which changes the form of the database.
  database.onversionchange = () => database.close()

  const read = (name: string) => database.transaction(name).objectStore(name)

  /** Runs a transaction that changes something, to its end. */
  function change(work: (conversations: IDBObjectStore, turns: IDBObjectStore) => void): Promise<void> {
    const transaction = database.transaction(['conversations', 'turns'], 'readwrite')
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve()
      transaction.onabort = () => reject(transaction.error)
      work(transaction.objectStore('conversations'), transaction.objectStore('turns'))
    })
  }

  return {
    isLasting: true,
    conversations: () => done(read('conversations').getAll()),
    turns: conversation => done(conversation === undefined ? read('turns').getAll() : read('turns').index('conversation').getAll(conversation)),
    put: (all, turns) => change((conversations, stored) => {
      for (const conversation of all) conversations.put(conversation)
      for (const turn of turns) stored.put(turn)
    }),
    deleteTurns: ids => change((_, turns) => {
      for (const id of ids) turns.delete(id)
    }),
    delete: id => change((conversations, turns) => {
      conversations.delete(id)
      const keys = turns.index('conversation').getAllKeys(id)
      keys.onsuccess = () => keys.result.forEach(key => turns.delete(key))
    })
  }
}

function inMemory(): Store {
  const [kept, keptTurns] = [new Map<string, Conversation>(), new Map<string, Turn>()]
  const turnsOf = (id?: string) => [...keptTurns.values()].filter(({ conversation }) => id === undefined || conversation === id)
  return {
    isLasting: false,
    conversations: async () => [...kept.values()],
    turns: async id => turnsOf(id),
    async put(conversations, turns) {
      for (const conversation of conversations) kept.set(conversation.id, structuredClone(conversation))
      for (const turn of turns) keptTurns.set(turn.id, structuredClone(turn))
    },
    async deleteTurns(ids) {
      for (const id of ids) keptTurns.delete(id)
    },
    async delete(id) {
      kept.delete(id)
      for (const turn of turnsOf(id)) keptTurns.delete(turn.id)
    }
  }
}
