// The tabs. The address of the page names the one that is shown.

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
  // Charts take their width when they are seen.
  window.dispatchEvent(new Event('resize'))
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
  tabs.forEach((tab, n) => {
    tab.addEventListener('click', () => choose(tab))
    tab.addEventListener('keydown', ({ key }) => {
      const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: -1 }[key]
      const next = to === undefined ? undefined : tabs.at(to % tabs.length)
      if (next) choose(next)
    })
  })
  addEventListener('hashchange', showNamed)
  showNamed()
}
