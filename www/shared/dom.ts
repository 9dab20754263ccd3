// Finds, makes and swaps elements.

/** The element of the page with this id. Throws if it is missing or of another class. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const element = document.getElementById(id)
  if (!(element instanceof type)) throw new Error(`The page lacks <${type.name} id="${id}">`)
  return element
}

/** A new element with a class and text. The text is never read as HTML. */
export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  text = ''
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  element.className = className
  element.textContent = text
  return element
}

/** Shows one element in place of another, and gives it the focus if that had it. */
export function swap(hidden: HTMLElement, shown: HTMLElement) {
  const hadFocus = document.activeElement === hidden
  hidden.hidden = true
  shown.hidden = false
  if (hadFocus) shown.focus()
}
