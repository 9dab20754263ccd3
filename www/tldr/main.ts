// The page around the widget: all it adds is that the page opens without a network next time.
import type { Progress } from 'ternlight'
import { byId } from '../shared/dom.ts'

const state = byId('offline-state', HTMLElement)
const kept = { model: false, pages: false }

document.addEventListener('tldr-progress', event => {
  if ((event as CustomEvent<Progress>).detail.phase !== 'ready') return
  kept.model = true
  show()
})

// In development there is no built site to keep.
if (import.meta.env.PROD && 'serviceWorker' in navigator) await keepPages()

async function keepPages() {
  try {
    // At the site's root, as it answers for files of other folders too: the package's worker and its wasm.
    await navigator.serviceWorker.register('../sw.js')
    await navigator.serviceWorker.ready
    kept.pages = true
    show()
  } catch (error) {
    state.textContent = `The pages could not be kept: ${error instanceof Error ? error.message : error}`
  }
}

function show() {
  if (kept.model && kept.pages) state.textContent = 'Both are kept: this page opens and sums up offline.'
  else if (kept.pages) state.textContent = 'The pages are kept: this one opens offline.'
}
