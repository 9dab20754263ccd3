// Search in conversations. This file knows nothing of the page.
import type { Conversation, Turn } from './conversation.ts'

export interface Found {
  conversation: Conversation
  /** Some text around the first hit; empty if it is in the title. */
  excerpt: string
}

/** Characters of an excerpt before and after a hit. */
const AROUND = 40

/** A text without case and accents. Every character keeps its index. */
const folded = (text: string): string =>
  Array.from({ length: text.length }, (_, n) => {
    const character = text[n]!
    return character < '\u0080' ? character.toLowerCase() : (character.normalize('NFD')[0] ?? character).toLowerCase()[0] ?? character
  }).join('')

/** The conversations that have every word of the query in the title or in one of their turns, the latest first. */
export function find(query: string, conversations: readonly Conversation[], turns: Iterable<Turn>): Found[] {
  const words = folded(query).split(/\s+/).filter(word => word)
  const latest = [...conversations].sort((a, b) => b.updated - a.updated)
  if (words.length === 0) return latest.map(conversation => ({ conversation, excerpt: '' }))
  const hits = new Map<string, string>()
  for (const { conversation, content, files = [] } of turns) {
    if (hits.has(conversation)) continue
    const excerpt = [content, ...files.map(({ text }) => text)].map(text => excerptOf(text, words)).find(text => text !== undefined)
    if (excerpt !== undefined) hits.set(conversation, excerpt)
  }
  return latest.flatMap(conversation => {
    if (hasAll(folded(conversation.title), words)) return [{ conversation, excerpt: '' }]
    const excerpt = hits.get(conversation.id)
    return excerpt === undefined ? [] : [{ conversation, excerpt }]
  })
}

const hasAll = (text: string, words: readonly string[]): boolean => words.every(word => text.includes(word))

/** Some text around the first hit; undefined if a word is missing. */
function excerptOf(text: string, words: readonly string[]): string | undefined {
  const plain = folded(text)
  if (!hasAll(plain, words)) return undefined
  const at = Math.min(...words.map(word => plain.indexOf(word)))
  const [start, end] = [Math.max(0, at - AROUND), at + AROUND]
  const cut = text.slice(start, end).replace(/\s+/g, ' ').trim()
  return `${start > 0 ? '… ' : ''}${cut}${end < text.length ? ' …' : ''}`
}
