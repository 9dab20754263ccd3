// The page that writes the two lines of a widget, and shows the widget with them.
import 'tritloom/widget'
import { copies } from '../shared/copy.ts'
import { byId } from '../shared/dom.ts'
import { keepPages } from '../shared/offline.ts'
import { attributesOf, linesOf } from './lines.ts'
import type { Wishes } from './lines.ts'

const form = byId('wishes', HTMLFormElement)
const lines = byId('lines', HTMLElement)
const preview = byId('preview', HTMLElement)

form.addEventListener('input', show)
form.addEventListener('submit', event => event.preventDefault())
copies(byId('copy', HTMLButtonElement), () => lines.textContent, byId('copied', HTMLElement))
show()

// A page that cannot be kept works as well as before.
await keepPages('../').catch(() => {})

function show() {
  const wishes = read()
  lines.textContent = linesOf(wishes)
  byId('accent-field', HTMLElement).hidden = !byId('own-accent', HTMLInputElement).checked
  showHash(wishes.model.trim() !== '')
  showPreview(wishes)
}

/** A hash counts only beside a model. One that is none would fail at each reader's. */
function showHash(hasModel: boolean) {
  const field = byId('integrity', HTMLInputElement)
  field.disabled = !hasModel
  const isWrong = !field.checkValidity()
  field.ariaInvalid = String(isWrong)
  byId('integrity-fault', HTMLElement).textContent = isWrong
    ? 'This is no hash: sha256- and the 44 characters of its base64 are needed. Each reader’s load would fail.' : ''
}

function read(): Wishes {
  const data = new FormData(form)
  const text = (name: string) => String(data.get(name) ?? '')
  return {
    script: text('script').trim() || 'tritloom/widget.js',
    for: text('for'),
    model: text('model'),
    integrity: text('integrity'),
    type: text('type'),
    length: text('length'),
    lang: text('lang'),
    label: text('label'),
    accent: data.has('own-accent') ? byId('accent', HTMLInputElement).value : '',
    prefer: data.has('prefer'),
    preload: data.has('preload'),
    consent: data.has('consent')
  }
}

/** Gives the widget of this page the wishes, but for the model and the text: these are the page's own. */
function showPreview(wishes: Wishes) {
  const wished = attributesOf({ ...wishes, for: 'story', model: '../models/tiny-stories.gguf', integrity: '', accent: '', consent: true })
  const names = new Set(wished.map(([name]) => name))
  for (const name of preview.getAttributeNames()) {
    if (name !== 'id' && name !== 'style' && !names.has(name)) preview.removeAttribute(name)
  }
  // An attribute that is set again lets go of the model.
  for (const [name, value] of wished) if (preview.getAttribute(name) !== value) preview.setAttribute(name, value)
  const style = new Map(attributesOf(wishes)).get('style') ?? ''
  for (const name of ['--tldr-accent', '--tldr-on-accent']) {
    const value = style.split('; ').find(rule => rule.startsWith(`${name}: `))?.slice(name.length + 2)
    preview.style.setProperty(name, value ?? '')
  }
  showLabel(wishes.label.trim())
}

function showLabel(text: string) {
  if (!text) return preview.replaceChildren()
  const label = document.createElement('span')
  label.slot = 'sum-up'
  label.textContent = text
  preview.replaceChildren(label)
}
