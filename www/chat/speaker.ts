// Says things to screen readers, politely: an answer block by block as it comes, and what has happened.
import { byId, create } from '../shared/dom.ts'

/** Texts that stay. Screen readers read a text when it is added. */
const MAX_TEXTS = 50

const spoken = byId('spoken', HTMLElement)

export function say(text: string) {
  spoken.append(create('p', '', text))
  while (spoken.childElementCount > MAX_TEXTS) spoken.firstElementChild!.remove()
}
