// The tabs. The address of the page names the one that is shown.
import { movedTo } from '../shared/keys.ts'

const tabs = [...document.querySelectorAll<HTMLButtonElement>('[role="tab"]')]

/** The panel of a tab. */
const panelOf = (tab: HTMLElement) => document.getElementById(tab.getAttribute('aria-controls')!)!

function show(tab: HTMLButtonElement) {
  for (const other of tabs) {
    const isShown = other === tab
    other.ariaSelected = String(isShown)
    other.tabIndex = isShown ? 0 : -1
    panelOf(other).hidden = !isShown
  }
}

/** Shows the tab that the address names, or the first one. */
const showNamed = () => show(tabs.find(tab => `#${panelOf(tab).id}` === location.hash) ?? tabs[0]!)

/** Makes the tabs work. */
export function startTabs() {
  const choose = (tab: HTMLButtonElement) => {
    history.replaceState(null, '', `#${panelOf(tab).id}`)
    show(tab)
    tab.focus()
  }
  for (const tab of tabs) {
    tab.addEventListener('click', () => choose(tab))
    tab.addEventListener('keydown', event => {
      const next = movedTo(event, tabs)
      if (next) choose(next)
    })
  }
  addEventListener('hashchange', showNamed)
  showNamed()
}
