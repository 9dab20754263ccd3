// Keys that move the focus or send.

/**
 * The element to which a key moves from the one with the focus: an arrow, Home or End. The page does not scroll then.
 * Undefined for other keys, and with Alt, Ctrl, Cmd or Shift.
 */
export function movedTo<T extends HTMLElement>(event: KeyboardEvent, elements: readonly T[]): T | undefined {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return undefined
  const now = elements.findIndex(element => element === document.activeElement)
  const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: -1 }[event.key]
  if (to === undefined || now < 0) return undefined
  event.preventDefault()
  return elements.at(to % elements.length)
}

/** Makes Enter in a field send its form, and Shift with Enter begin a new line. */
export function sendOnEnter(field: HTMLTextAreaElement, form: HTMLFormElement) {
  field.addEventListener('keydown', event => {
    // With an input method, Enter chooses a character, and must not send.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    form.requestSubmit()
  })
}
