// The buttons below a turn, which do something with it, and the forms that they open.
import { copy } from '../shared/copy.ts'
import { create } from '../shared/dom.ts'
import type { Turn } from './conversation.ts'
import { say } from './speaker.ts'

export interface Actions {
  edit(turn: Turn, text: string): void
  regenerate(turn: Turn): void
  goOn(turn: Turn): void
  /** Shows the branch `step` before or after that of this turn. */
  choose(turn: Turn, step: number): void
  branch(turn: Turn): void
  /** Gives the results of the calls of an answer. */
  giveResults(turn: Turn, results: string[]): void
}

/** How a turn is placed. */
export interface Position {
  /** Which of the turns after the same turn it is. */
  index: number
  count: number
  isLast: boolean
  /** Whether an answer of the conversation is being written, or no model is loaded. */
  isBusy: boolean
  /** Whether it is the answer that is being written here. */
  isLive: boolean
}

/** The bar below a turn; undefined while its answer is being written. */
export function createBar(turn: Turn, { index, count, isLast, isBusy, isLive }: Position, actions: Actions): HTMLElement | undefined {
  if (turn.role === 'tool' || isLive) return undefined
  const bar = create('div', 'actions')
  const add = (name: string, act: (button: HTMLButtonElement) => void, isOff = false) => {
    const button = create('button', '', name)
    button.type = 'button'
    button.disabled = isOff
    button.addEventListener('click', () => act(button))
    bar.append(button)
    return button
  }
  if (count > 1) {
    add('‹', () => actions.choose(turn, -1), isBusy || index === 0).ariaLabel = 'Branch before'
    bar.append(create('span', '', `${index + 1}/${count}`))
    add('›', () => actions.choose(turn, 1), isBusy || index === count - 1).ariaLabel = 'Branch after'
  }
  add('Copy', button => void copy(turn.content, button, say))
  add('Edit', () => openEditor(turn, bar, actions), isBusy)
  if (turn.role === 'assistant') {
    add('Regenerate', () => actions.regenerate(turn), isBusy)
    if (isLast && !turn.toolCalls && turn.content) add('Continue', () => actions.goOn(turn), isBusy)
    add('Branch', () => actions.branch(turn), isBusy).title = 'A new chat that begins like this one'
  }
  return bar
}

/** Opens a form in which the text of a turn is changed, in front of its bar. */
function openEditor(turn: Turn, bar: HTMLElement, actions: Actions) {
  const form = create('form', 'editor editing')
  const field = create('textarea')
  field.value = turn.content
  field.ariaLabel = turn.role === 'user' ? 'Edited message' : 'Edited answer'
  const save = create('button', 'primary', turn.role === 'user' ? 'Ask this' : 'Save')
  const cancel = create('button', '', 'Cancel')
  cancel.type = 'button'
  const buttons = create('div', 'buttons')
  buttons.append(save, cancel)
  form.append(field, buttons)
  const close = () => {
    form.remove()
    bar.hidden = false
    bar.querySelector('button')?.focus()
  }
  cancel.addEventListener('click', close)
  form.addEventListener('keydown', event => {
    if (event.key !== 'Escape') return
    event.stopPropagation()
    close()
  })
  form.addEventListener('submit', event => {
    event.preventDefault()
    const text = field.value.trim()
    if (text === turn.content || (text === '' && !turn.files)) return close()
    actions.edit(turn, text)
  })
  bar.hidden = true
  bar.before(form)
  field.focus()
}

/** The form for the results of the calls with which an answer has ended. */
export function createResults(turn: Turn, isBusy: boolean, actions: Actions): HTMLElement {
  const form = create('form', 'editor')
  const fields = (turn.toolCalls ?? []).map(({ name }) => {
    const [label, field] = [create('label', '', `Result of ${name}`), create('textarea')]
    field.rows = 1
    label.append(field)
    form.append(label)
    return field
  })
  const give = create('button', 'primary', 'Give the results')
  give.disabled = isBusy
  form.append(give)
  form.addEventListener('submit', event => {
    event.preventDefault()
    actions.giveResults(turn, fields.map(({ value }) => value))
  })
  return form
}
