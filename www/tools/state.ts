// The state of the page that the tools and the reader change, and its history.

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

/** A sentence that says which colours the page has. */
export const describeTheme = (theme: Theme): string =>
  `The colours are ${theme === 'system' ? 'those of the system' : theme}.`

/** An entry of the shopping list. */
export interface Item {
  name: string
  count: number
  isDone: boolean
}

/** An amount in a unit, and the unit in which it is shown too. */
export interface Conversion {
  amount: number
  from: string
  to: string
}

/** All that the tools can change. It is never changed in place. */
export interface State {
  items: readonly Item[]
  conversion: Conversion
  city: string
  theme: Theme
}

/** The state with its history. */
export class History {
  #now: State
  #past: { state: State, did: string }[] = []
  #onChange: (now: State, before: State, said: string) => void

  /** `onChange` gets the new state, the one before, and a sentence that says what has changed. */
  constructor(start: State, onChange: (now: State, before: State, said: string) => void) {
    this.#now = start
    this.#onChange = onChange
  }

  get now(): State {
    return this.#now
  }

  /** The change that `undo` would take back, as a sentence; undefined if there is none. */
  get last(): string | undefined {
    return this.#past.at(-1)?.did
  }

  /** Changes parts of the state. `did` is a sentence about it. */
  change(did: string, parts: Partial<State>) {
    this.#past.push({ state: this.#now, did })
    this.#set({ ...this.#now, ...parts }, did)
  }

  /** Takes the last change back. */
  undo() {
    const last = this.#past.pop()
    if (last) this.#set(last.state, `Undone: ${last.did}`)
  }

  #set(state: State, said: string) {
    const before = this.#now
    this.#now = state
    this.#onChange(state, before, said)
  }
}

/** Adds `count` of an item to the list. */
export function withItem(items: readonly Item[], name: string, count: number): Item[] {
  const isIt = (item: Item) => item.name.toLowerCase() === name.toLowerCase()
  if (!items.some(isIt)) return [...items, { name, count, isDone: false }]
  return items.map(item => (isIt(item) ? { ...item, count: item.count + count, isDone: false } : item))
}
