// The widget's shadow DOM. All changes to it are here.
import { STYLE } from './style.js'
import type { Failure } from '../words.js'

type Attributes = Record<string, string>
type Content = string | HTMLElement

/** Makes an element with attributes and children. An attribute without a value is `''`. */
function element<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...content: Content[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...content)
  return made
}

const button = (text: string, attributes: Attributes) =>
  element('button', { part: 'button', ...attributes }, text)

/** The elements that the widget listens to, and the changes that it makes. */
export type View = ReturnType<typeof buildView>

/** Fills the widget's shadow root. */
export function buildView(root: ShadowRoot) {
  // A page's content security policy may forbid style elements, but not adopted style sheets.
  const style = new CSSStyleSheet()
  style.replaceSync(STYLE)
  root.adoptedStyleSheets = [style]

  const summarize = button('Sum it up', { id: 'summarize', type: 'button' })
  const stop = button('Stop', { id: 'stop', type: 'button', hidden: '' })
  const question = element('p', { id: 'question', role: 'status' })
  const agree = button('Download', { id: 'agree', type: 'button' })
  const decline = button('Not now', { id: 'decline', type: 'button' })
  const asking = { role: 'group', 'aria-labelledby': 'question', hidden: '' }
  const consent = element(
    'div', { id: 'consent', part: 'consent', ...asking }, question, agree, decline
  )
  const step = element('label', { for: 'progress' })
  const bar = element('progress', { id: 'progress', max: '1' })
  const loadNotes = element('ul', { id: 'load-notes', 'aria-live': 'polite' })
  const loading = element(
    'div', { id: 'loading', part: 'progress', hidden: '' }, step, bar, loadNotes
  )
  const summary = element(
    'p', { id: 'summary', part: 'summary', 'aria-live': 'polite', hidden: '' }
  )
  const note = element('p', { id: 'note', part: 'note', hidden: '' })
  const error = element('div', { id: 'error', part: 'error', role: 'alert', hidden: '' })
  const text = element('textarea', {
    id: 'text', rows: '6', placeholder: 'Paste a text of any length'
  })
  const ownButton = button('Sum up this text', {})
  const own = element('form', {}, element('label', { for: 'text' }, 'Your text'), text, ownButton)
  root.append(
    element('div', { id: 'bar' }, element('strong', {}, 'TL;DR'), summarize, stop),
    consent, loading, summary, note, error,
    element('details', {}, element('summary', {}, 'Sum up your own text'), own)
  )

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
    decline,
    own,
    text,
    start() {
      const focused = root.activeElement === summarize
      summary.textContent = ''
      summary.hidden = error.hidden = true
      setNote('')
      setBusy(true)
      if (focused) stop.focus()
    },
    /** Asks the visitor. Resolves when the visitor agrees. */
    ask(text: string): Promise<void> {
      consent.hidden = false
      question.textContent = text
      if (root.activeElement === stop) agree.focus()
      return new Promise(resolve => { agree.onclick = () => resolve() })
    },
    /** Removes the question. */
    asked() {
      const focused = consent.contains(root.activeElement)
      consent.hidden = true
      if (focused) stop.focus()
    },
    /** Shows the progress of a load, and its notes. */
    progress(fraction: number, text: string, notes: string[]) {
      loading.hidden = false
      bar.value = fraction
      step.textContent = text
      // Screen readers read a list again when it changes, and most reports bring no new note.
      if (notes.length !== loadNotes.childElementCount) {
        loadNotes.replaceChildren(...notes.map(note => element('li', {}, note)))
      }
    },
    /** Hides everything that `progress` has shown. */
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
      error.replaceChildren(message, ' ', element('code', {}, code), advice && ` ${advice}`)
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
