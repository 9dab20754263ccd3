// The widget's shadow DOM. All changes to it are here.
import type { Labels, Slots } from './labels.js'
import { pointsOf } from './points.js'
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

const button = (label: HTMLElement, attributes: Attributes) =>
  element('button', { part: 'button', ...attributes }, label)

/** The elements that the widget listens to, and the changes that it makes. */
export type View = ReturnType<typeof buildView>

/** Fills the widget's shadow root. */
export function buildView(root: ShadowRoot) {
  // A page's content security policy may forbid style elements, but not adopted style sheets.
  const style = new CSSStyleSheet()
  style.replaceSync(STYLE)
  root.adoptedStyleSheets = [style]

  const slots = {} as Record<keyof Slots, HTMLSlotElement>
  const slot = (name: keyof Slots) => (slots[name] = element('slot', { name }))
  let labels: Labels | undefined
  let isList = false
  let written = ''

  const summarize = button(slot('sum-up'), { id: 'summarize', type: 'button' })
  const stop = button(slot('stop'), { id: 'stop', type: 'button', hidden: '' })
  const question = element('p', { id: 'question', role: 'status' })
  const agree = button(slot('download'), { id: 'agree', type: 'button' })
  const decline = button(slot('decline'), { id: 'decline', type: 'button' })
  const asking = { role: 'group', 'aria-labelledby': 'question', hidden: '' }
  const consent = element(
    'div', { id: 'consent', part: 'consent', ...asking }, question, agree, decline
  )
  // The sentences of a load and of an error are in English.
  const step = element('label', { for: 'progress', lang: 'en' })
  const bar = element('progress', { id: 'progress', max: '1' })
  const loadNotes = element('ul', { id: 'load-notes', lang: 'en', 'aria-live': 'polite' })
  const loading = element(
    'div', { id: 'loading', part: 'progress', hidden: '' }, step, bar, loadNotes
  )
  const summary = element(
    'div', { id: 'summary', part: 'summary', 'aria-live': 'polite', hidden: '' }
  )
  const copy = button(slot('copy'), { id: 'copy', type: 'button', hidden: '' })
  const copied = element('p', { id: 'copied', part: 'note', role: 'status' })
  const note = element('p', { id: 'note', part: 'note', hidden: '' })
  const error = element('div', { id: 'error', part: 'error', role: 'alert', hidden: '' })
  const text = element('textarea', { id: 'text', rows: '6' })
  const ownButton = button(slot('own-button'), {})
  const own = element('form', {}, element('label', { for: 'text' }, slot('own-label')), text, ownButton)
  root.append(
    element('div', { id: 'bar' }, element('strong', {}, slot('title')), summarize, stop),
    consent, loading, summary, note, copy, copied, error,
    element('details', {}, element('summary', {}, slot('own')), own)
  )
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(written)
      copied.textContent = labels!.copied
    } catch {
      getSelection()?.selectAllChildren(summary)
      copied.textContent = labels!.selected
    }
  })

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

  /** Makes the list that of the points so far. Only the last of those that are there may have changed. */
  function showPoints() {
    const { introduction, points } = pointsOf(written)
    let list = summary.querySelector('ul')
    if (!list) {
      list = element('ul', { part: 'points' })
      summary.append(element('p'), list)
    }
    summary.firstElementChild!.textContent = introduction
    while (list.childElementCount > points.length) list.lastElementChild!.remove()
    if (list.lastElementChild) list.lastElementChild.textContent = points[list.childElementCount - 1]!
    for (const point of points.slice(list.childElementCount)) list.append(element('li', {}, point))
  }

  return {
    summarize,
    stop,
    decline,
    own,
    text,
    /** Shows labels that are in `language`. Those of slots that the page fills stay the page's. */
    label(now: Labels, language: string) {
      labels = now
      for (const [name, slot] of Object.entries(slots)) {
        slot.textContent = now.slots[name as keyof Slots]
        slot.lang = language
      }
      for (const said of [question, note, copied]) said.lang = language
      text.placeholder = now.placeholder
    },
    /** Empties the widget for a summary, which is a list of points if `asList`. */
    start(asList: boolean) {
      const focused = root.activeElement === summarize
      isList = asList
      written = summary.textContent = copied.textContent = ''
      summary.hidden = error.hidden = copy.hidden = true
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
      written += text
      if (isList) showPoints()
      else summary.append(text)
    },
    note: setNote,
    /** Shows an error, whose sentences are in `language`. */
    fail({ code, message, advice }: Failure, language: string) {
      error.lang = language
      error.replaceChildren(message, ' ', element('code', {}, code), advice && ` ${advice}`)
      error.hidden = false
    },
    end(stopped: boolean) {
      const focused = root.activeElement === stop
      setBusy(false)
      copy.hidden = written === ''
      if (stopped) setNote(labels!.stopped)
      if (focused) summarize.focus()
    }
  }
}
