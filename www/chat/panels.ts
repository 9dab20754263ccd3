// The panels beside the conversation. On a narrow screen one is opened over it.
import { byId } from '../shared/dom.ts'

const PANELS = { 'open-chats': 'chats', 'open-settings': 'settings' } as const

/** Connects the panels. */
export function createPanels() {
  const openers = Object.entries(PANELS).map(([opener, panel]) => ({
    opener: byId(opener, HTMLButtonElement), panel: byId(panel, HTMLElement)
  }))

  function show(open?: HTMLElement) {
    for (const { opener, panel } of openers) {
      panel.classList.toggle('open', panel === open)
      opener.ariaExpanded = String(panel === open)
    }
  }

  for (const { opener, panel } of openers) {
    opener.addEventListener('click', () => show(panel.classList.contains('open') ? undefined : panel))
    panel.addEventListener('keydown', event => {
      if (event.key !== 'Escape' || !panel.classList.contains('open')) return
      event.stopPropagation()
      show()
      opener.focus()
    })
  }

  return { close: () => show() }
}
