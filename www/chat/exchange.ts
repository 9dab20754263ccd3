// Conversations as files: JSON has all branches, Markdown the one that is shown. This file knows nothing of the page.
import { contentOf, pathTo, titleOf, type Conversation, type Turn, type Turns } from './conversation.ts'

export interface Exchanged {
  conversation: Conversation
  turns: Turn[]
}

const FORMAT = 'tritloom-chat'
const VERSION = 1

export const toJson = (all: readonly Exchanged[]): string =>
  `${JSON.stringify({ format: FORMAT, version: VERSION, conversations: all }, null, 2)}\n`

const AUTHORS: Readonly<Record<Turn['role'], string>> = { user: 'You', assistant: 'Model', tool: 'Tool' }

/** A line that would be read as the beginning of a message, or as one that is escaped. */
const HEADING = /^(\\*## (?:You|Model|Tool))$/gm

/** The branch of a conversation that is shown. */
export function toMarkdown({ title, leaf }: Conversation, turns: Turns): string {
  const messages = pathTo(turns, leaf).map(turn => {
    const calls = (turn.toolCalls ?? []).map(({ name, arguments: args }) => `Call of ${name}: ${JSON.stringify(args)}`)
    const text = [contentOf(turn), ...calls].filter(part => part).join('\n\n')
    return `## ${AUTHORS[turn.role]}\n\n${text.replace(HEADING, '\\$1')}\n`
  })
  return [`# ${title}\n`, ...messages].join('\n')
}

/**
 * Reads a file of conversations, whose ids are new: a file that is imported twice gives copies. Throws an error for
 * people.
 */
export function fromFile(name: string, text: string, now: number, id: () => string): Exchanged[] {
  const isJson = /\.json$/i.test(name) || /^\s*[{[]/.test(text)
  return isJson ? fromJson(text, id) : [fromMarkdown(text, now, id)]
}

const NO_EXPORT = 'This file is no export of this page. Choose a .json or .md file that “Export” has made.'

function fromJson(text: string, id: () => string): Exchanged[] {
  const read = parsed(text) as { format?: unknown, version?: unknown, conversations?: unknown } | null
  if (typeof read !== 'object' || read?.format !== FORMAT || !Array.isArray(read.conversations)) throw new Error(NO_EXPORT)
  if (read.version !== VERSION) {
    throw new Error(`This file has version ${read.version} of the format, and this page reads ${VERSION}. Open it with a newer page.`)
  }
  return read.conversations.map((item: Exchanged) => renewed(item, id))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('This file is no whole JSON. Perhaps its download was cut short: export it again.')
  }
}

/** A conversation of a file with new ids. A turn comes after its parent, so that there are no circles. */
function renewed(item: Exchanged, id: () => string): Exchanged {
  const wrong = () => new Error(`${NO_EXPORT} One of its conversations is damaged.`)
  const { conversation: read, turns: given } = item ?? {}
  if (typeof read?.title !== 'string' || !isTime(read.created) || !isTime(read.updated) || !Array.isArray(given)) throw wrong()
  const conversation = id()
  const ids = new Map<string, string>()
  const turns = given.map((turn: Turn): Turn => {
    if (!isTurn(turn) || (turn.parent !== null && !ids.has(turn.parent)) || ids.has(turn.id)) throw wrong()
    const mine = id()
    ids.set(turn.id, mine)
    return {
      ...turn, id: mine, conversation, parent: turn.parent === null ? null : ids.get(turn.parent)!,
      ...(turn.state === 'writing' && { state: 'stopped' })
    }
  })
  const leaf = ids.get(read.leaf ?? '') ?? turns.at(-1)?.id ?? null
  return { conversation: { id: conversation, title: read.title, created: read.created, updated: read.updated, leaf }, turns }
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

const isTextOrNone = (value: unknown): boolean => value === undefined || typeof value === 'string'

const isTurn = (value: unknown): value is Turn => {
  const turn = value as Partial<Turn> | null
  return typeof turn === 'object' && turn !== null && typeof turn.id === 'string' && typeof turn.content === 'string' &&
    turn.role !== undefined && Object.hasOwn(AUTHORS, turn.role) && isTime(turn.created) &&
    (turn.parent === null || typeof turn.parent === 'string') &&
    [turn.reasoning, turn.figures, turn.model, turn.toolCallId].every(isTextOrNone) && isListOf(turn.files, isFile) &&
    isListOf(turn.toolCalls, isCall) && isSettings(turn.settings)
}

const isListOf = (value: unknown, isItem: (item: never) => boolean): boolean =>
  value === undefined || (Array.isArray(value) && value.every(item => typeof item === 'object' && item !== null && isItem(item as never)))

const isFile = ({ name, text }: { name: unknown, text: unknown }): boolean => typeof name === 'string' && typeof text === 'string'

const isCall = (call: { id: unknown, name: unknown, arguments: unknown }): boolean =>
  typeof call.id === 'string' && typeof call.name === 'string' && typeof call.arguments === 'object' && call.arguments !== null

const isSettings = (value: unknown): boolean => {
  const settings = value as { options?: unknown, system?: unknown } | null | undefined
  return settings === undefined || (typeof settings?.system === 'string' && typeof settings.options === 'object' && settings.options !== null)
}

/** Reads what `toMarkdown` has written. Results of tools become messages of the user. */
function fromMarkdown(text: string, now: number, id: () => string): Exchanged {
  const parts = text.replaceAll('\r', '').split(/^## (You|Model|Tool)$/m)
  if (parts.length < 3) throw new Error(NO_EXPORT)
  const conversation = id()
  const turns: Turn[] = []
  for (let n = 1; n < parts.length; n += 2) {
    const content = parts[n + 1]!.trim().replace(/^\\(\\*## (?:You|Model|Tool))$/gm, '$1')
    const role = parts[n] === 'Model' ? 'assistant' : 'user'
    turns.push({ id: id(), conversation, parent: turns.at(-1)?.id ?? null, role, content, created: now + n })
  }
  const title = /^# (.+)$/m.exec(parts[0]!)?.[1]?.trim() || titleOf(turns[0]!.content)
  return { conversation: { id: conversation, title, created: now, updated: now, leaf: turns.at(-1)!.id }, turns }
}
