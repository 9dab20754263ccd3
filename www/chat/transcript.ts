// The conversation on the page. Text is inserted as text, never as HTML.
import type { Stats, Token } from 'tritloom'
import { byId, create } from '../shared/dom.ts'
import type { Failure } from 'tritloom/words'
import { describeStats } from '../shared/figures.ts'
import { failureBox } from '../shared/notices.ts'

/** A question on the page, and its answer as it comes. */
export interface Turn {
  append(token: Token): void
  finish(stats: Stats | null, seed: number | undefined): void
  fail(failure: Failure): void
}

/** Connects the conversation on the page. */
export function createTranscript() {
  const log = byId('transcript', HTMLElement)
  const welcome = byId('welcome', HTMLElement)

  /** Whether the end is in view. It is kept in view unless the reader scrolls up. */
  let isAtEnd = true
  let top = 0
  log.addEventListener('scroll', () => {
    const distance = log.scrollHeight - log.scrollTop - log.clientHeight
    // The end may have moved away since, for example because the log got smaller.
    isAtEnd = distance < 40 || (isAtEnd && log.scrollTop >= top)
    top = log.scrollTop
  })
  const showEnd = () => {
    if (isAtEnd && welcome.hidden) log.scrollTop = log.scrollHeight
  }
  // The field below grows with its text.
  new ResizeObserver(showEnd).observe(log)

  function keepInView(change: () => void) {
    change()
    showEnd()
  }

  function addTurn(question: string): Turn {
    welcome.hidden = true
    const turn = create('article', 'turn')
    const user = create('p', 'message user')
    user.append(create('span', 'visually-hidden', 'You: '), question)
    const answer = create('p', 'message assistant streaming')
    const text = new Text()
    answer.append(create('span', 'visually-hidden', 'Model: '), text)
    turn.append(user, answer)
    log.append(turn)
    isAtEnd = true
    showEnd()
    // Then screen readers read the answer once, when it is whole, and not every text as it comes.
    log.ariaBusy = 'true'

    function end(...more: HTMLElement[]) {
      keepInView(() => {
        answer.classList.remove('streaming')
        turn.append(...more)
      })
      log.ariaBusy = 'false'
    }

    /** The text of the reasoning, which is folded, in front of the answer. */
    const reasoning = new Text()
    function append({ text: slice, channel }: Token) {
      if (channel === 'answer') return text.appendData(slice)
      if (!reasoning.isConnected) answer.before(fold('Reasoning', reasoning))
      reasoning.appendData(slice)
    }

    return {
      append: token => keepInView(() => append(token)),
      finish: (stats, seed) => end(create('p', 'figures', describeStats(stats, seed))),
      fail(failure) {
        if (text.length === 0) answer.remove()
        end(failureBox('No answer', failure))
      }
    }
  }

  return {
    addTurn,
    clear() {
      for (const turn of log.querySelectorAll('.turn')) turn.remove()
      log.ariaBusy = 'false'
      welcome.hidden = false
    },
    /** `use` gets the text of the suggestion that the reader clicks. */
    onSuggestion(use: (text: string) => void) {
      byId('suggestions', HTMLElement).addEventListener('click', ({ target }) => {
        if (target instanceof HTMLButtonElement) use(target.textContent)
      })
    }
  }
}

function fold(title: string, text: Text): HTMLElement {
  const details = create('details', 'reasoning')
  const content = create('p', 'message')
  content.append(text)
  details.append(create('summary', '', title), content)
  return details
}
