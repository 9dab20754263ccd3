// The conversations: which one is open, and what is done with it. This file knows nothing of the page.
import type { Token } from 'tritloom'
import {
  branchOff, newestEnd, pathTo, siblingsOf, titleOf, type AttachedFile, type Conversation, type Settings, type Turn, type Turns
} from './conversation.ts'
import type { Exchanged } from './exchange.ts'
import { newId } from './ids.ts'
import type { Library } from './library.ts'
import type { Session } from './session.ts'
import { BUSY_ELSEWHERE, prepare, write } from './writing.ts'

/** The page, as far as conversations concern it. */
export interface View {
  /** Another conversation or another branch is open, or its turns have changed. `toEnd` asks to show its end. */
  onShow(toEnd: boolean): void
  /** An answer of the open conversation has got more. */
  onToken(turn: Turn, token: Token): void
  /** An answer of the open conversation has ended. */
  onEnd(turn: Turn, outcome: Outcome): void
  /** An answer of another conversation has ended. */
  onEndElsewhere(): void
}

export interface Outcome {
  /** The reason why it has failed. */
  error?: unknown
  /** The question, which was taken back because nothing of the answer came. */
  takenBack?: Turn
  /** Another tab is writing it. */
  isElsewhere?: boolean
}

interface Running {
  controller: AbortController
  turns: Turns
  turn: Turn
}

/** How an answer is taken back. */
interface Back {
  /** The end of the branch that is shown then. */
  before: string | null
  /** The turns that go with it. */
  remove?: Turn[]
}

export class Chats {
  /** The turns of the open conversation. */
  turns: Turns = new Map()
  /** The name of the model in use, as it is stored with its answers; undefined while there is none. */
  model: string | undefined
  #id: string | undefined
  #session: Session
  #library: Library
  #view: View
  #running = new Map<string, Running>()
  #lastCreated = 0
  /** How often a conversation was opened. */
  #opened = 0

  constructor(session: Session, library: Library, view: View) {
    this.#session = session
    this.#library = library
    this.#view = view
  }

  /** The open conversation; undefined if it is a new one without turns. */
  get conversation(): Conversation | undefined {
    return this.#id === undefined ? undefined : this.#library.conversations.get(this.#id)
  }

  /** The branch that is shown. */
  get path(): Turn[] {
    return pathTo(this.turns, this.conversation?.leaf ?? null)
  }

  /** Whether an answer of the open conversation is being written here. */
  get isBusy(): boolean {
    return this.#id !== undefined && this.#running.has(this.#id)
  }

  isWriting(conversation: string): boolean {
    return this.#running.has(conversation)
  }

  /** Opens a conversation; a new one without an id. */
  async open(id?: string): Promise<void> {
    const mine = ++this.#opened
    const turns = id === undefined ? new Map() : (this.#running.get(id)?.turns ?? (await this.#library.turns(id)))
    if (mine !== this.#opened) return
    this.#id = id
    this.turns = turns
    this.#view.onShow(true)
    this.resume()
  }

  /** Another tab has changed a conversation. */
  async changedElsewhere(id: string): Promise<void> {
    if (id !== this.#id || this.isBusy) return
    if (!this.conversation) return this.open()
    const turns = await this.#library.turns(id)
    if (id !== this.#id || this.isBusy) return
    this.turns = turns
    this.#view.onShow(false)
  }

  /** Goes on with an answer that a reload has interrupted, if its model is in use. */
  resume(): void {
    const last = this.path.at(-1)
    if (last?.state === 'writing' && !this.isBusy && this.model !== undefined && last.model === this.model) void this.#write(last)
  }

  /** Asks a question at the end of the branch that is shown. */
  ask(content: string, files: AttachedFile[], settings: Settings): void {
    const conversation = this.conversation ?? this.#begin(content || files[0]?.name || '')
    this.#askAfter(conversation.leaf, content, files, settings)
  }

  /** Asks another question instead, in a branch of its own. */
  editQuestion({ parent, files = [] }: Turn, content: string, settings: Settings): void {
    this.#askAfter(parent, content, files, settings)
  }

  /** Puts another answer beside one, in a branch of its own. */
  editAnswer(turn: Turn, content: string): void {
    const { toolCalls: _, figures: _f, reasoning: _r, settings: _s, ...rest } = turn
    const edited = this.#add({ ...rest, id: newId(), content, created: this.#now(), state: 'stopped' })
    this.#save(edited.id, edited)
    this.#view.onShow(false)
  }

  /** Answers the question of an answer again, in a branch of its own. */
  regenerate(turn: Turn, settings: Settings): void {
    const before = this.conversation!.leaf
    const answer = this.#newAnswer(turn.conversation, turn.parent, settings)
    this.#save(answer.id, answer)
    void this.#write(answer, { before })
  }

  /** Lets an answer go on. */
  goOn(turn: Turn, settings: Settings): void {
    turn.settings = settings
    void this.#write(turn)
  }

  /** Gives the results of the calls with which an answer has ended, in their order. */
  giveResults(turn: Turn, results: readonly string[], settings: Settings): void {
    const added: Turn[] = []
    for (const [n, { id: toolCallId }] of (turn.toolCalls ?? []).entries()) {
      const { conversation } = turn
      const parent = added.at(-1)?.id ?? turn.id
      added.push(this.#add({ id: newId(), conversation, parent, role: 'tool', content: results[n] ?? '', toolCallId, created: this.#now() }))
    }
    // Otherwise a model that has to call a tool would never stop calling.
    const { toolChoice, ...options } = settings.options
    const then = { ...settings, options: { ...options, ...(toolChoice && { toolChoice: 'auto' as const }) } }
    const answer = this.#newAnswer(turn.conversation, added.at(-1)?.id ?? turn.id, then)
    this.#save(answer.id, ...added, answer)
    void this.#write(answer, { before: turn.id, remove: added })
  }

  /** Shows the branch of the turn that is `step` before or after this one. */
  choose(turn: Turn, step: number): void {
    const siblings = siblingsOf(this.turns, turn)
    const other = siblings[siblings.indexOf(turn) + step]
    if (!other) return
    this.#save(newestEnd(this.turns, other.id))
    this.#view.onShow(false)
    this.resume()
  }

  /** Begins a conversation with copies of the turns up to this one, and opens it. */
  async branch(turn: Turn): Promise<void> {
    const title = `${this.conversation?.title ?? ''} (branch)`
    const { conversation, turns } = branchOff(pathTo(this.turns, turn.id), title, Date.now(), newId)
    await this.#library.save(conversation, ...turns)
    await this.open(conversation.id)
  }

  async rename(id: string, title: string): Promise<void> {
    const conversation = this.#library.conversations.get(id)
    if (conversation) await this.#library.save({ ...conversation, title })
  }

  /** Deletes a conversation, and opens a new one if it is open. */
  async delete(id: string): Promise<Exchanged | undefined> {
    this.#running.get(id)?.controller.abort()
    const deleted = await this.#library.delete(id)
    if (id === this.#id) await this.open()
    return deleted
  }

  /** Stops the answer of the open conversation. */
  stop(): void {
    if (this.#id !== undefined) this.#running.get(this.#id)?.controller.abort()
  }

  stopAll(): void {
    for (const { controller } of this.#running.values()) controller.abort()
  }

  /** Stores what has come of the answers that are being written. */
  saveAll(): void {
    for (const { turn } of this.#running.values()) void this.#library.saveTurn(turn)
  }

  #begin(text: string): Conversation {
    const now = this.#now()
    const conversation: Conversation = { id: newId(), title: titleOf(text), created: now, updated: now, leaf: null }
    this.#id = conversation.id
    void this.#library.save(conversation)
    return conversation
  }

  #askAfter(parent: string | null, content: string, files: AttachedFile[], settings: Settings): void {
    const before = this.conversation!.leaf
    const conversation = this.#id!
    const question = this.#add({
      id: newId(), conversation, parent, role: 'user', content, created: this.#now(), ...(files.length > 0 && { files })
    })
    const answer = this.#newAnswer(conversation, question.id, settings)
    this.#save(answer.id, question, answer)
    void this.#write(answer, { before, remove: [question] })
  }

  #newAnswer(conversation: string, parent: string | null, settings: Settings): Turn {
    return this.#add({
      id: newId(), conversation, parent, role: 'assistant', content: '', created: this.#now(), state: 'writing', settings,
      ...(this.model !== undefined && { model: this.model })
    })
  }

  #add(turn: Turn): Turn {
    this.turns.set(turn.id, turn)
    return turn
  }

  /** Shows another branch, and stores turns. */
  #save(leaf: string | null, ...turns: Turn[]): void {
    const conversation = this.conversation
    if (!conversation) return
    const updated = turns.length > 0 ? this.#now() : conversation.updated
    void this.#library.save({ ...conversation, leaf, updated }, ...turns)
  }

  /** Generates an answer. `back` says how to take it back if nothing of it comes while its conversation is open. */
  async #write(turn: Turn, back?: Back): Promise<void> {
    const { turns } = this
    const id = turn.conversation
    const controller = new AbortController()
    this.#running.set(id, { controller, turns, turn })
    prepare(turn)
    this.#view.onShow(true)
    const outcome: Outcome = {}
    try {
      const before = pathTo(turns, turn.parent)
      const onToken = (turn: Turn, token: Token) => {
        if (id === this.#id) this.#view.onToken(turn, token)
      }
      const { signal } = controller
      const how = await write({ session: this.#session, library: this.#library, before, turn, signal, onToken })
      outcome.isElsewhere = how === BUSY_ELSEWHERE
    } catch (error) {
      outcome.error = error
    }
    this.#running.delete(id)
    if (id !== this.#id) return this.#view.onEndElsewhere()
    const isEmpty = turn.content === '' && turn.reasoning === undefined
    if (outcome.error !== undefined && isEmpty && back) {
      this.#takeBack(turn, back)
      const question = back.remove?.find(({ role }) => role === 'user')
      if (question) outcome.takenBack = question
    }
    this.#view.onEnd(turn, outcome)
  }

  /** Takes an answer back. A conversation without turns is a new one again. */
  #takeBack(turn: Turn, { before, remove = [] }: Back): void {
    const id = turn.conversation
    const gone = [...remove, turn]
    for (const turn of gone) this.turns.delete(turn.id)
    void this.#library.deleteTurns(id, gone.map(turn => turn.id))
    if (this.turns.size > 0) return this.#save(before)
    void this.#library.delete(id)
    this.#id = undefined
  }

  /** The time, later than that of any turn before. */
  #now(): number {
    this.#lastCreated = Math.max(Date.now(), this.#lastCreated + 1)
    return this.#lastCreated
  }
}
