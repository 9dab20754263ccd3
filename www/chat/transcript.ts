// The conversation on the page: the turns of the branch that is shown.
import type { Token } from 'tritloom'
import { copy } from '../shared/copy.ts'
import { byId } from '../shared/dom.ts'
import { createBar, createResults, type Actions, type Position } from './actions.ts'
import type { Turn } from './conversation.ts'
import { createMessage, type MessageView } from './message.ts'
import { say } from './speaker.ts'

/** A turn with its position. */
export interface Shown {
  turn: Turn
  position: Position
}

interface Row {
  view: MessageView
  /** All that the view shows, to find out whether it has to be made again. */
  content: string
  position: string
}

/** Pixels from the end within which the end counts as in view. */
const NEAR = 40

/** Connects the conversation on the page. */
export function createTranscript(actions: Actions) {
  const log = byId('transcript', HTMLElement)
  const welcome = byId('welcome', HTMLElement)
  let rows = new Map<string, Row>()
  /** The box with the reason why no answer came. */
  let failure: HTMLElement | undefined

  /** Whether the end is in view. It is kept in view unless the reader scrolls up. */
  let isAtEnd = true
  let top = 0
  log.addEventListener('scroll', () => {
    const distance = log.scrollHeight - log.scrollTop - log.clientHeight
    // The end may have moved away since, for example because the log got smaller.
    isAtEnd = distance < NEAR || (isAtEnd && log.scrollTop >= top)
    top = log.scrollTop
  })
  const showEnd = () => {
    if (isAtEnd && welcome.hidden) log.scrollTop = log.scrollHeight
  }
  // The field below grows with its text.
  new ResizeObserver(showEnd).observe(log)

  log.addEventListener('click', ({ target }) => {
    if (!(target instanceof HTMLButtonElement) || !target.matches('.code .copy')) return
    void copy(target.closest('.code')!.querySelector('code')!.textContent, target, say)
  })

  function rowOf({ turn, position }: Shown): Row {
    const known = rows.get(turn.id)
    const content = contentOf(turn, position.isLive)
    const isSame = known?.view.turn === turn && known.content === content
    const row = isSame ? known : { view: createMessage(turn, position.isLive, showEnd), content, position: '' }
    const now = JSON.stringify(position)
    // A text that is being edited stays on the page.
    if (row.position !== now && !row.view.element.querySelector('.editing')) {
      row.position = now
      setBar(row.view, position)
    }
    return row
  }

  function setBar({ element, turn }: MessageView, position: Position) {
    for (const old of element.querySelectorAll('.actions, .editor')) old.remove()
    const bar = createBar(turn, position, actions)
    if (position.isLast && turn.toolCalls) element.append(createResults(turn, position.isBusy, actions))
    if (bar) element.append(bar)
  }

  return {
    /** Shows these turns. Those that are shown already stay as they are. `toEnd` shows the end. */
    show(shown: readonly Shown[], toEnd: boolean) {
      failure?.remove()
      const before = rows
      rows = new Map(shown.map(item => [item.turn.id, rowOf(item)]))
      for (const { view } of before.values()) {
        if (rows.get(view.turn.id)?.view !== view) view.element.remove()
      }
      let previous: Element = welcome
      for (const { view: { element } } of rows.values()) {
        if (previous.nextElementSibling !== element) previous.after(element)
        previous = element
      }
      welcome.hidden = rows.size > 0
      if (toEnd) isAtEnd = true
      showEnd()
    },
    append(turn: Turn, token: Token) {
      rows.get(turn.id)?.view.append(token)
    },
    /** An answer has ended. `show` shows its bar then. */
    end(turn: Turn) {
      const row = rows.get(turn.id)
      if (!row) return
      row.view.end()
      row.content = contentOf(turn, false)
      row.position = ''
    },
    /** Shows why there is no answer, until the conversation next changes. */
    fail(box: HTMLElement) {
      failure = box
      welcome.hidden = true
      log.append(box)
      showEnd()
    },
    /** Moves the focus to the buttons of a turn. */
    focus(turn: Turn, label: string) {
      const buttons = [...(rows.get(turn.id)?.view.element.querySelectorAll<HTMLButtonElement>('.actions button:enabled') ?? [])]
      ;(buttons.find(({ ariaLabel }) => ariaLabel === label) ?? buttons[0])?.focus()
    },
    /** `use` gets the text of the suggestion that the reader clicks. */
    onSuggestion(use: (text: string) => void) {
      byId('suggestions', HTMLElement).addEventListener('click', ({ target }) => {
        if (target instanceof HTMLButtonElement) use(target.textContent)
      })
    }
  }
}

/** All that a view shows of a turn, but for a text that grows. */
const contentOf = ({ state, figures, content }: Turn, isLive: boolean): string =>
  isLive ? 'live' : JSON.stringify([state, figures, content.length])
