// The widget's shadow DOM, and every change to it.
import { STYLE } from './widget-style.js'
import type { Failure } from './words.js'

const HTML = `
  <div id="bar">
    <strong>TL;DR</strong>
    <button id="summarize" part="button" type="button">Sum it up</button>
    <button id="stop" part="button" type="button" hidden>Stop</button>
  </div>
  <div id="consent" part="consent" role="group" aria-labelledby="question" hidden>
    <p id="question" role="status"></p>
    <button id="agree" part="button" type="button">Download</button>
    <button id="decline" part="button" type="button">Not now</button>
  </div>
  <div id="loading" part="progress" hidden>
    <label for="progress"></label>
    <progress id="progress" max="1"></progress>
    <ul id="load-notes" aria-live="polite"></ul>
  </div>
  <p id="summary" part="summary" aria-live="polite" hidden></p>
  <p id="note" part="note" hidden></p>
  <div id="error" part="error" role="alert" hidden></div>
  <details>
    <summary>Sum up your own text</summary>
    <form>
      <label for="text">Your text</label>
      <textarea id="text" rows="6" placeholder="Paste a text of any length"></textarea>
      <button part="button">Sum up this text</button>
    </form>
  </details>`

/** The elements that the widget listens to, and the changes that it makes. */
export type View = ReturnType<typeof buildView>

/** Fills the widget's shadow root. */
export function buildView(root: ShadowRoot) {
  // A page's content security policy may forbid style elements, but not adopted style sheets.
  const style = new CSSStyleSheet()
  style.replaceSync(STYLE)
  root.adoptedStyleSheets = [style]
  root.innerHTML = HTML

  const find = <T extends HTMLElement>(selector: string) => root.querySelector<T>(selector)!
  const summarize = find<HTMLButtonElement>('#summarize')
  const stop = find<HTMLButtonElement>('#stop')
  const consent = find('#consent')
  const question = find('#question')
  const agree = find<HTMLButtonElement>('#agree')
  const loading = find('#loading')
  const bar = find<HTMLProgressElement>('#progress')
  const step = find('#loading label')
  const loadNotes = find('#load-notes')
  const summary = find('#summary')
  const note = find('#note')
  const error = find('#error')
  const own = find<HTMLFormElement>('form')
  const ownButton = find<HTMLButtonElement>('form button')

  function setBusy(busy: boolean) {
    summarize.hidden = ownButton.disabled = busy
    stop.hidden = !busy
    summary.classList.toggle('streaming', busy)
    summary.ariaBusy = String(busy)
  }

  function setNote(text: string) {
    note.hidden = text === ''
    note.textContent = text
  }

  return {
    summarize,
    stop,
    decline: find<HTMLButtonElement>('#decline'),
    own,
    text: find<HTMLTextAreaElement>('#text'),
    start() {
      const focused = root.activeElement === summarize
      summary.textContent = ''
      summary.hidden = error.hidden = true
      setNote('')
      setBusy(true)
      if (focused) stop.focus()
    },
    /** Asks the visitor, and resolves when that agrees. */
    ask(text: string): Promise<void> {
      consent.hidden = false
      question.textContent = text
      if (root.activeElement === stop) agree.focus()
      return new Promise(resolve => { agree.onclick = () => resolve() })
    },
    /** Takes the question away. */
    asked() {
      const focused = consent.contains(root.activeElement)
      consent.hidden = true
      if (focused) stop.focus()
    },
    /** Shows how far a load is, and what else has happened. */
    progress(fraction: number, text: string, notes: string[]) {
      loading.hidden = false
      bar.value = fraction
      step.textContent = text
      // Screen readers read a list that changes; most reports bring no new note.
      if (notes.length !== loadNotes.childElementCount) {
        loadNotes.replaceChildren(...notes.map(listItem))
      }
    },
    /** Hides what `progress` has shown. */
    loaded() {
      loading.hidden = true
      loadNotes.replaceChildren()
    },
    append(text: string) {
      summary.hidden = false
      summary.append(text)
    },
    note: setNote,
    fail({ code, message, advice }: Failure) {
      const name = document.createElement('code')
      name.textContent = code
      error.replaceChildren(message, ' ', name, advice && ` ${advice}`)
      error.hidden = false
    },
    end(stopped: boolean) {
      const focused = root.activeElement === stop
      setBusy(false)
      if (stopped) setNote('Stopped.')
      if (focused) summarize.focus()
    }
  }
}

function listItem(text: string): HTMLElement {
  const item = document.createElement('li')
  item.textContent = text
  return item
}
