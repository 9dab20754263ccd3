// A turn on the page. Text of the model is shown as sanitised markdown, or as code
// if it is JSON; that of the reader as text.
import type { Token } from 'tritloom'
import { formatBytes } from 'tritloom/words'
import { create } from '../shared/dom.ts'
import type { AttachedFile, Turn } from './conversation.ts'
import { createCode } from './markdown/code.ts'
import { createMarkdown } from './markdown/view.ts'
import { say } from './speaker.ts'

/** Characters of a message of the reader that are shown unfolded. */
const MAX_UNFOLDED = 2000

const UNFINISHED = 'not finished: another tab is writing it, or it goes on when its model is loaded'

export interface MessageView {
  element: HTMLElement
  turn: Turn
  /** Shows the next token of an answer. */
  append(token: Token): void
  /** The answer has ended: shows its figures. */
  end(): void
}

/** Shows a turn. `isLive` says that it grows; `onFrame` is called after each change of the page then. */
export function createMessage(turn: Turn, isLive: boolean, onFrame: () => void): MessageView {
  const element = create('article', 'turn')
  element.dataset.id = turn.id
  if (turn.role === 'user') element.append(question(turn))
  if (turn.role === 'tool') element.append(result(turn))
  if (turn.role !== 'assistant') return { element, turn, append: () => {}, end: () => {} }
  return { turn, ...answer(turn, element, isLive, onFrame) }
}

function question({ content, files = [] }: Turn): HTMLElement {
  const box = create('div', 'message user')
  box.append(create('span', 'visually-hidden', 'You: '), ...files.map(attached))
  if (content.length > MAX_UNFOLDED) box.append(folded(`${content.slice(0, 80)} …`, content))
  else box.append(content)
  return box
}

const attached = ({ name, text }: AttachedFile): HTMLElement =>
  folded(`${name} · ${formatBytes(new TextEncoder().encode(text).length)}`, text)

function folded(title: string, text: string): HTMLElement {
  const box = create('details', 'file')
  const content = create('pre', '', text)
  content.tabIndex = 0
  box.append(create('summary', '', title), content)
  return box
}

function result({ content }: Turn): HTMLElement {
  const box = create('div', 'message tool')
  box.append(create('span', 'label', 'Result: '), content)
  return box
}

function answer(turn: Turn, element: HTMLElement, isLive: boolean, onFrame: () => void) {
  const box = create('div', 'message assistant')
  box.append(create('span', 'visually-hidden', 'Model: '))
  const isJson = turn.settings?.options.responseFormat !== undefined
  const shown = isJson ? createCode(box, 'JSON', onFrame) : createMarkdown(box, isLive ? say : undefined, onFrame)
  const reasoning = new Text()
  let hasEnded = false
  element.append(box)
  add(turn.reasoning ?? '', 'reasoning')
  add(turn.content, 'answer')
  if (isLive) box.classList.add('streaming')
  else end()

  function add(text: string, channel: Token['channel']) {
    if (channel === 'answer' && text) shown.append(text)
    if (channel !== 'reasoning' || !text) return
    if (!reasoning.isConnected) box.before(reasoningBox(reasoning))
    reasoning.appendData(text)
    onFrame()
  }

  /** Shows a call as it comes. */
  function addCall({ text, call }: Token) {
    if (call?.name) element.append(callBox(call.name))
    const code = [...element.querySelectorAll('.call code')].at(-1)
    code?.append(text)
    onFrame()
  }

  function end() {
    if (hasEnded) return
    hasEnded = true
    shown.end()
    box.classList.remove('streaming')
    box.hidden = turn.content === ''
    for (const call of element.querySelectorAll('.call')) call.remove()
    for (const { name, arguments: args } of turn.toolCalls ?? []) {
      const call = callBox(name)
      call.querySelector('code')!.append(JSON.stringify(args))
      element.append(call)
    }
    const figures = turn.state === 'writing' ? UNFINISHED : turn.figures
    if (figures) element.append(create('p', 'figures', figures))
    onFrame()
  }

  return {
    element,
    append(token: Token) {
      if (token.channel === 'call') addCall(token)
      else add(token.text, token.channel)
    },
    end
  }
}

function reasoningBox(text: Text): HTMLElement {
  const details = create('details', 'reasoning')
  const content = create('p')
  content.append(text)
  details.append(create('summary', '', 'Reasoning'), content)
  return details
}

function callBox(name: string): HTMLElement {
  const box = create('p', 'call')
  box.append(create('span', 'label', `Calls ${name} `), create('code'))
  return box
}
