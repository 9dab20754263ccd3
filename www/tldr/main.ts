// The page around the widget. It only makes the page open without a network next time.
import type { Progress } from 'tritloom'
import 'tritloom/widget'
import { byId } from '../shared/dom.ts'

const state = byId('offline-state', HTMLElement)
const kept = { model: false, pages: false }

document.addEventListener('tldr-progress', event => {
  const { phase, notes } = (event as CustomEvent<Progress>).detail
  if (phase !== 'ready' && phase !== 'storing' && phase !== 'stored') return
  kept.model = phase !== 'storing' && notes.every(note => note.kind !== 'not-stored')
  show()
})

// The development server has no built site to store.
if (import.meta.env.PROD && 'serviceWorker' in navigator) await keepPages()

async function keepPages() {
  try {
    // It has to be at the site's root, because it answers for files of other folders too: for the
    // package's worker and its wasm.
    await navigator.serviceWorker.register(trusted('../sw.js'))
    await navigator.serviceWorker.ready
    kept.pages = true
    show()
  } catch (error) {
    const why = error instanceof Error ? error.message : error
    state.textContent = `The pages could not be kept: ${why}`
  }
}

/**
 * An address of ours, for hosts that require Trusted Types. The standard types do not know these
 * yet.
 */
function trusted(url: string): string {
  const { trustedTypes } = window as unknown as { trustedTypes?: TrustedTypes }
  return trustedTypes?.createPolicy('page', { createScriptURL: url => url }).createScriptURL(url) ?? url
}

interface TrustedTypes {
  createPolicy(name: string, rules: Policy): Policy
}

interface Policy {
  createScriptURL(url: string): string
}

function show() {
  if (!kept.pages) return
  state.textContent = kept.model
    ? 'Both are kept: this page opens and sums up offline.'
    : 'The pages are kept: this one opens offline.'
}
