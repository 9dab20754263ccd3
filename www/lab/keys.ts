// Keys that move the focus.

/**
 * The element to which a key moves from the one with the focus: an arrow, Home or End. The page does not scroll then.
 * Undefined for other keys.
 */
export function movedTo<T extends HTMLElement>(event: KeyboardEvent, elements: readonly T[]): T | undefined {
  const now = elements.findIndex(element => element === document.activeElement)
  const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: -1 }[event.key]
  if (to === undefined || now < 0) return undefined
  event.preventDefault()
  return elements.at(to % elements.length)
}
