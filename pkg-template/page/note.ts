// Reads the note of a saved chat. Fetched when a chat is restored.
import { badOption, checkMessages, checkOptions } from '../check.js'
import { DEFAULTS } from './chat.js'
import type { Note } from './chat.js'
import { copies } from './said.js'

/** The note. It may be written by anyone, so everything in it is checked. */
export function readNote(note: string): Note {
  try {
    const { before, said, dropped, overflow, defaults } = JSON.parse(note) as Note
    checkMessages(before)
    checkMessages(said)
    checkOptions(defaults, DEFAULTS)
    const isCount = Number.isInteger(dropped) && dropped >= 0 && dropped <= said.length
    if (isCount && (overflow === 'error' || overflow === 'slide')) {
      return { before: copies(before), said, dropped, overflow, defaults }
    }
  } catch { /* It is no note. */ }
  throw badOption('chat', 'is damaged')
}
