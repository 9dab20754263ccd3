// A conversation as a tree. Whoever edits a message or asks for another answer begins a branch, and no branch is lost.
// This file knows nothing of the page.
import type { GenerateOptions, Message, ToolCall } from 'tritloom'

/** A text file that goes with a message. */
export interface AttachedFile {
  name: string
  text: string
}

/** The settings with which an answer is generated. */
export interface Settings {
  options: GenerateOptions
  /** The message of the system; empty for none. */
  system: string
}

/** A message in the tree. */
export interface Turn {
  id: string
  /** The id of its conversation. */
  conversation: string
  /** The id of the turn before it; null if it is a first one. */
  parent: string | null
  role: 'user' | 'assistant' | 'tool'
  content: string
  /** Milliseconds since 1970. */
  created: number
  /** Of a user: files that the model reads before the text. */
  files?: AttachedFile[]
  /** Of an assistant: its reasoning, which the model does not see again. */
  reasoning?: string
  toolCalls?: ToolCall[]
  /** Of a tool: the call of which it is the result. */
  toolCallId?: string
  /** Of an answer that has not ended by itself: it is being written, was stopped, or has failed. */
  state?: 'writing' | 'stopped' | 'failed'
  /** A line of figures about an answer. */
  figures?: string
  /** The address or the name of the model that has answered. */
  model?: string
  settings?: Settings
}

export interface Conversation {
  id: string
  title: string
  created: number
  /** When its last turn was added. */
  updated: number
  /** The id of the turn at the end of the branch that is shown; null if there are no turns. */
  leaf: string | null
}

/** All turns of a conversation by their ids. */
export type Turns = Map<string, Turn>

/** The characters of a title that the page makes of a message. */
const MAX_TITLE = 60

/** A title made of the first message. */
export function titleOf(text: string): string {
  const line = text.trim().replace(/\s+/g, ' ')
  if (line.length <= MAX_TITLE) return line || 'Untitled'
  const cut = line.slice(0, MAX_TITLE)
  return `${cut.slice(0, cut.lastIndexOf(' ') > 20 ? cut.lastIndexOf(' ') : MAX_TITLE)} …`
}

/** The turns from the first to the one with this id. */
export function pathTo(turns: Turns, leaf: string | null): Turn[] {
  const path: Turn[] = []
  for (let turn = leaf === null ? undefined : turns.get(leaf); turn; turn = turn.parent === null ? undefined : turns.get(turn.parent)) {
    path.unshift(turn)
  }
  return path
}

/** The turns that follow the same turn, the oldest first. */
export const siblingsOf = (turns: Turns, turn: Turn): Turn[] => following(turns, turn.parent)

/** The end of the newest branch through a turn. */
export function newestEnd(turns: Turns, id: string): string {
  const next = following(turns, id).at(-1)
  return next ? newestEnd(turns, next.id) : id
}

const following = (turns: Turns, parent: string | null): Turn[] =>
  [...turns.values()].filter(turn => turn.parent === parent).sort((a, b) => a.created - b.created)

/** The text of a turn as the model gets it: with its files. */
export function contentOf({ content, files = [] }: Turn): string {
  return [...files.map(fenced), content].filter(text => text !== '').join('\n\n')
}

/** A file between fences that are longer than any in it. */
function fenced({ name, text }: AttachedFile): string {
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map(({ length }) => length))
  const fence = '`'.repeat(longest + 1)
  return `File ${name}:\n${fence}\n${text.replace(/\n$/, '')}\n${fence}`
}

/**
 * The messages that the model gets. An answer without text is left out, and so is the question before it: templates
 * refuse two messages of the user in a row.
 */
export function messagesOf(path: readonly Turn[], system = ''): Message[] {
  const hasText = (turn?: Turn) => turn?.role === 'assistant' && (turn.content !== '' || Boolean(turn.toolCalls?.length))
  const seen = path.filter((turn, n) => {
    if (turn.role === 'assistant') return hasText(turn)
    return turn.role === 'tool' || n === path.length - 1 || hasText(path[n + 1])
  })
  const messages = seen.map((turn): Message => ({
    role: turn.role,
    content: contentOf(turn),
    ...(turn.toolCalls && { toolCalls: turn.toolCalls }),
    ...(turn.toolCallId !== undefined && { toolCallId: turn.toolCallId })
  }))
  return system ? [{ role: 'system', content: system }, ...messages] : messages
}

/** Copies of a branch as a conversation of its own. `id` makes ids. */
export function branchOff(path: readonly Turn[], title: string, now: number, id: () => string): { conversation: Conversation, turns: Turn[] } {
  const conversation = id()
  const turns: Turn[] = []
  for (const turn of path) turns.push({ ...turn, id: id(), conversation, parent: turns.at(-1)?.id ?? null })
  return { conversation: { id: conversation, title, created: now, updated: now, leaf: turns.at(-1)?.id ?? null }, turns }
}
