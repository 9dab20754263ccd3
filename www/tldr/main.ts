// The page around the widget: all it adds is that the page opens without a network next time.
import { byId } from '../shared/dom.ts'

const state = byId('offline-state', HTMLElement)

// In development there is no built site to keep.
if (import.meta.env.PROD && 'serviceWorker' in navigator) await keepPages()

async function keepPages() {
  try {
    // At the site's root, as it answers for files of other folders too: the package's worker and its wasm.
    await navigator.serviceWorker.register('../sw.js')
    await navigator.serviceWorker.ready
    state.textContent = 'The pages are kept too: this one opens offline.'
  } catch (error) {
    state.textContent = `The pages could not be kept: ${error instanceof Error ? error.message : error}`
  }
}
