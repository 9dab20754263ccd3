// Splits markdown that grows into parts that no later text can change, and the part at its end that may still change.
// So a page renders each part once, and only the open one again, however long the text is. This file knows nothing of
// the page.
import type { Token, Tokens } from 'marked'
import { blocksOf } from './html.ts'

/** A part of the text. If it is not `isNew`, it goes on where the done part before it has ended. */
export type Part =
  /** A block, such as a paragraph. */
  | { kind: 'block', block: Token, isNew: boolean }
  /** Items of a list. */
  | { kind: 'list', block: Tokens.List, isNew: boolean }
  /** Rows of a table. */
  | { kind: 'table', block: Tokens.Table, isNew: boolean }
  /** Lines of code. They are always done. */
  | { kind: 'code', text: string, language: string, isNew: boolean }

export interface Grown {
  done: Part[]
  /** Replaces the open part of the call before. */
  open: Part | undefined
}

/** Characters of an open part. A longer one is split, so that a step of a long text takes no longer than one of a short text. */
const MAX_OPEN = 4000

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/
/** The end of open code that may be the line that closes it. */
const MAYBE_CLOSING = /\n? {0,3}[`~]*[ \t]*$/
/**
 * A last line that has only marks so far. Other characters may follow that make something else of them: after `-`, a
 * space makes an item, and an end of the line makes a heading of the line before.
 */
const MAYBE_MARK = /(?<=^|\n)[ \t]*(?:[-=*+#>|`~_]{1,9}|\d{1,9}[.)]?)?[ \t]*$|$/
/** The rows of a table before those of its body. */
const HEADER = /^[^\n]*\n[^\n]*\n/

export class Blocks {
  /** The text of the open part. */
  #tail = ''
  /** The header of the table whose last row is open. */
  #header = ''
  /** Whether the open part goes on in the done part before it. */
  #goesOn = false
  /** Matches the line that closes the code in which the text is. */
  #closing: RegExp | undefined
  #language = ''
  /** Whether nothing of the code was read yet but the new line before it. */
  #isFirst = false

  /** Takes the next text. */
  add(text: string): Grown {
    this.#tail += text.replaceAll('\r', '')
    return this.#read(false)
  }

  /** The text has ended: all that was open is done. */
  end(): Part[] {
    // A new line lets a closing line close.
    this.#tail += '\n'
    const { done, open } = this.#read(true)
    if (open) done.push(open)
    if (this.#closing) this.#addCode(this.#tail.trimEnd(), done)
    return done
  }

  #read(isEnd: boolean): Grown {
    const done: Part[] = []
    for (;;) {
      if (this.#closing && !this.#readCode(this.#closing, done)) return { done, open: undefined }
      const open = this.#readBlocks(isEnd, done)
      if (!this.#closing) return { done, open }
    }
  }

  /** Reads code up to the line that closes it. Returns whether that line is there. */
  #readCode(closing: RegExp, done: Part[]): boolean {
    const found = closing.exec(this.#tail)
    const end = found?.index ?? this.#tail.search(MAYBE_CLOSING)
    this.#addCode(this.#tail.slice(0, end), done)
    this.#tail = this.#tail.slice(found ? end + found[0].length : end)
    if (found) this.#closing = undefined
    return found !== null
  }

  /** Reads blocks. All but the last are done. Returns that one, unless it is code between fences. */
  #readBlocks(isEnd: boolean, done: Part[]): Part | undefined {
    const text = this.#header + this.#tail
    const known = isEnd ? text.length : text.search(MAYBE_MARK)
    const blocks = blocksOf(text.slice(0, known))
    const space = blocks.at(-1)?.type === 'space' ? blocks.pop()!.raw : ''
    const last = blocks.at(-1)
    // After an empty line a list may go on, and so may code that is indented.
    const mayGoOn = last && (!space || last.type === 'list' || (last.type === 'code' && !FENCE.test(last.raw)))
    if (mayGoOn) blocks.pop()
    const start = mayGoOn ? lengthOf(blocks) : known
    for (const block of blocks) this.#finish(block, done)
    this.#tail = text.slice(Math.max(start, this.#header.length))
    if (!mayGoOn) return undefined
    const [opening, mark, language] = (last.type === 'code' && FENCE.exec(last.raw)) || []
    if (opening && mark) {
      this.#openCode(mark, language!.trim().split(/\s/)[0] ?? '', done)
      // The new line before the first line of the code.
      this.#tail = this.#tail.slice(opening.length - 1)
      return undefined
    }
    if (last.type === 'list') return this.#openList(last as Tokens.List, done)
    if (last.type === 'table') return this.#openTable(last as Tokens.Table, done)
    return this.#shorten(part(last, this.#goesOn), done)
  }

  #addCode(text: string, done: Part[]): void {
    if (text === '') return
    done.push({ kind: 'code', text: this.#isFirst ? text.slice(1) : text, language: this.#language, isNew: false })
    this.#isFirst = false
  }

  #openCode(mark: string, language: string, done: Part[]): void {
    this.#closing = new RegExp(`\\n {0,3}\\${mark[0]}{${mark.length},}[ \\t]*\\n`)
    this.#language = language
    this.#isFirst = true
    this.#goesOn = false
    done.push({ kind: 'code', text: '', language, isNew: true })
  }

  /** All items but the last are done. */
  #openList(list: Tokens.List, done: Part[]): Part | undefined {
    const before = list.items.slice(0, -1)
    if (before.length > 0) {
      this.#finish({ ...list, items: before }, done)
      this.#goesOn = true
    }
    this.#tail = this.#tail.slice(lengthOf(before))
    return this.#shorten({ kind: 'list', block: { ...list, items: list.items.slice(-1) }, isNew: !this.#goesOn }, done)
  }

  /** All rows but the last are done. */
  #openTable(table: Tokens.Table, done: Part[]): Part | undefined {
    const before = table.rows.slice(0, -1)
    const header = HEADER.exec(table.raw)?.[0]
    if (before.length > 0 && header) {
      const lines = (this.#header ? this.#tail : this.#tail.slice(header.length)).split('\n')
      this.#finish({ ...table, rows: before }, done)
      this.#tail = lines.slice(before.length).join('\n')
      this.#header = header
      this.#goesOn = true
    }
    return this.#shorten({ kind: 'table', block: { ...table, rows: table.rows.slice(-1) }, isNew: !this.#goesOn }, done)
  }

  /** Splits an open part that is too long. The text behind the split is read as a paragraph that goes on. */
  #shorten(open: Part, done: Part[]): Part | undefined {
    if (this.#tail.length <= MAX_OPEN) return open
    const gap = Math.max(this.#tail.lastIndexOf('\n'), this.#tail.lastIndexOf(' '))
    const at = gap > MAX_OPEN / 2 ? gap : this.#tail.length
    const [now, later] = [this.#tail.slice(0, at), this.#tail.slice(at).trimStart()]
    for (const block of blocksOf(this.#header + now)) this.#finish(block, done)
    this.#goesOn = open.kind === 'block' && open.block.type === 'paragraph'
    this.#tail = later
    return undefined
  }

  #finish(block: Token, done: Part[]): void {
    if (block.type !== 'space') done.push(part(block, this.#goesOn))
    this.#goesOn = false
    this.#header = ''
  }
}

const lengthOf = (blocks: readonly { raw: string }[]): number => blocks.reduce((length, { raw }) => length + raw.length, 0)

const part = (block: Token, goesOn: boolean): Part => {
  const isNew = !goesOn
  if (block.type === 'list') return { kind: 'list', block: block as Tokens.List, isNew }
  if (block.type === 'table') return { kind: 'table', block: block as Tokens.Table, isNew }
  return { kind: 'block', block, isNew }
}
