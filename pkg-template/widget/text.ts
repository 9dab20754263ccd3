// Finds the text of the page that a widget summarises.
import { fetched } from '../error.js'

/** There is no text to summarise, or it cannot be found. */
export class Unreadable extends Error {
  override name = 'no-text'

  /** The message is in `language`. */
  constructor(message: string, readonly language = 'en') {
    super(message)
  }
}

/**
 * The text of an element. `name` is the id of the element, or a CSS selector for it. Without a
 * name, it is the text of the article of this page, which Mozilla's Readability finds. It may be
 * empty. Throws `Unreadable` if there is no such element.
 */
export async function textOf(name: string | null): Promise<string> {
  return name ? element(name).innerText : article()
}

function element(name: string): HTMLElement {
  const found = document.getElementById(name) ?? document.querySelector<HTMLElement>(name)
  if (!found) throw new Unreadable(`No element of this page is “${name}”.`)
  return found
}

async function article(): Promise<string> {
  const { Readability } = await fetched(() => import('./readability.js'))
  // Readability changes the document that it reads.
  const copy = document.cloneNode(true) as Document
  return new Readability(copy).parse()?.textContent ?? ''
}
