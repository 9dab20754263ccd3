// The page around the widget. It only makes the page open without a network next time.
import type { Progress } from 'tritloom'
import 'tritloom/widget'
import { byId } from '../shared/dom.ts'
import { keepPages } from '../shared/offline.ts'

const state = byId('offline-state', HTMLElement)
const kept = { model: false, pages: false }

document.addEventListener('tldr-progress', event => {
  const { phase, notes } = (event as CustomEvent<Progress>).detail
  if (phase !== 'ready' && phase !== 'storing' && phase !== 'stored') return
  kept.model = phase !== 'storing' && notes.every(note => note.kind !== 'not-stored')
  show()
})

try {
  kept.pages = await keepPages('../')
  show()
} catch (error) {
  const why = error instanceof Error ? error.message : error
  state.textContent = `The pages could not be kept: ${why}`
}

function show() {
  if (!kept.pages) return
  state.textContent = kept.model
    ? 'Both are kept: this page opens and sums up offline.'
    : 'The pages are kept: this one opens offline.'
}
