// Which text of the page a widget sums up.
import { fetched } from '../error.js'

/** There is no text to sum up, or it cannot be found. */
export class Unreadable extends Error {
  override name = 'no-text'
}

/**
 * The text of the element that `name` is the id of, or a CSS selector for; without a name, what
 * Mozilla's Readability takes for the article of this page, which may be empty. Throws `Unreadable`
 * if there is no such element.
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
  // It changes what it reads.
  const copy = document.cloneNode(true) as Document
  return new Readability(copy).parse()?.textContent ?? ''
}
