// The things of the page: shows the state, and lets the reader change it by hand.
import { byId, create } from '../shared/dom.ts'
import { CITIES, describeConversion, timeIn, UNIT_NAMES } from './facts.ts'
import { describeTheme, History, withItem, type Item, type State, type Theme } from './state.ts'

const START: State = {
  items: [
    { name: 'bread', count: 1, isDone: false },
    { name: 'milk', count: 2, isDone: true },
    { name: 'apples', count: 6, isDone: false }
  ],
  conversion: { amount: 10, from: 'km', to: 'miles' },
  city: 'London',
  theme: 'system'
}

/** The section of the page that shows a part of the state. */
const SECTIONS: Record<keyof State, string> = {
  items: 'list', conversion: 'converter', city: 'clock', theme: 'theme'
}

/** Connects the things. Gives the state that they show. */
export function createThings(): History {
  const list = byId('items', HTMLElement)
  const itemField = byId('item', HTMLInputElement)
  const amount = byId('amount', HTMLInputElement)
  const [from, to, city] = ['from', 'to', 'city'].map(id => byId(id, HTMLSelectElement)) as [HTMLSelectElement, HTMLSelectElement, HTMLSelectElement]
  const time = byId('time', HTMLTimeElement)
  const themes = byId('themes', HTMLFormElement)
  const last = byId('last', HTMLElement)
  const undo = byId('undo', HTMLButtonElement)
  const history = new History(START, (now, before, said) => {
    show(now)
    last.textContent = said
    undo.disabled = history.last === undefined
    for (const [part, id] of Object.entries(SECTIONS)) {
      if (now[part as keyof State] !== before[part as keyof State]) flash(byId(id, HTMLElement))
    }
  })

  for (const select of [from, to]) select.append(...UNIT_NAMES.map(name => new Option(name)))
  city.append(...CITIES.map(name => new Option(name)))

  undo.addEventListener('click', () => {
    history.undo()
    // A disabled button cannot keep the focus.
    if (undo.disabled) itemField.focus()
  })
  byId('add', HTMLFormElement).addEventListener('submit', event => {
    event.preventDefault()
    const name = itemField.value.trim()
    if (!name) return
    history.change(`Put ${name} on the list.`, { items: withItem(history.now.items, name, 1) })
    itemField.value = ''
  })
  const conversion = byId('conversion', HTMLFormElement)
  conversion.addEventListener('submit', event => event.preventDefault())
  conversion.addEventListener('change', () => {
    if (!amount.reportValidity()) return
    const now = { amount: amount.valueAsNumber, from: from.value, to: to.value }
    history.change(converted(now), { conversion: now })
  })
  city.addEventListener('change', () => history.change(`The clock shows ${city.value}.`, { city: city.value }))
  themes.addEventListener('change', () => {
    const theme = new FormData(themes).get('theme') as Theme
    history.change(describeTheme(theme), { theme })
  })

  /** Changes the element of each item in place, so that the focus stays where it is. */
  function showItems(items: readonly Item[]) {
    while (list.children.length > items.length) list.lastElementChild!.remove()
    while (list.children.length < items.length) list.append(itemRow(list.children.length))
    for (const [n, { name, count, isDone }] of items.entries()) {
      const row = list.children[n]!
      row.querySelector('input')!.checked = isDone
      row.querySelector('span')!.textContent = count === 1 ? name : `${count} ${name}`
      row.querySelector('button span')!.textContent = ` ${name}`
    }
  }

  /** The row of the item with an index. */
  function itemRow(index: number): HTMLElement {
    const row = create('li')
    const label = create('label')
    const box = create('input')
    box.type = 'checkbox'
    label.append(box, create('span'))
    const remove = create('button', '', 'Remove')
    remove.type = 'button'
    remove.append(create('span', 'visually-hidden'))
    row.append(label, remove)
    box.addEventListener('change', () => {
      const { items } = history.now
      const { name } = items[index]!
      const did = `${box.checked ? 'Ticked' : 'Unticked'} ${name}.`
      history.change(did, { items: items.map((item, n) => (n === index ? { ...item, isDone: box.checked } : item)) })
    })
    remove.addEventListener('click', () => {
      const { items } = history.now
      history.change(`Removed ${items[index]!.name}.`, { items: items.filter((_, n) => n !== index) })
      itemField.focus()
    })
    return row
  }

  function show({ items, conversion, city: shown, theme }: State) {
    showItems(items)
    amount.value = String(conversion.amount)
    from.value = conversion.from
    to.value = conversion.to
    byId('converted', HTMLOutputElement).value = converted(conversion)
    city.value = shown
    tick()
    themes.querySelector<HTMLInputElement>(`[value='${theme}']`)!.checked = true
    document.documentElement.dataset.theme = theme
  }

  function tick() {
    time.textContent = timeIn(history.now.city)
  }

  show(history.now)
  setInterval(tick, 1000)
  return history
}

/** A conversion as a sentence, or why there is none. */
function converted({ amount, from, to }: State['conversion']): string {
  try {
    return describeConversion(amount, from, to)
  } catch (error) {
    return (error as Error).message
  }
}

/** Shows that something has changed. */
function flash(element: HTMLElement) {
  element.classList.remove('changed')
  void element.offsetWidth // Begins the animation anew.
  element.classList.add('changed')
}
