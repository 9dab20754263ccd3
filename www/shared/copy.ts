// Copies texts by buttons, and says whether it went well.

/** Milliseconds for which a button says how it went. */
const SHOWN = 2000

/** The texts of buttons that say how it went just now. */
const labels = new WeakMap<HTMLButtonElement, string>()

/** Copies a text. The button says how it went, and `say` is told it in words, for those who do not see the button. */
export async function copy(text: string, button: HTMLButtonElement, say: (words: string) => void) {
  const label = labels.get(button) ?? button.textContent
  labels.set(button, label)
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
    say('Copied.')
  } catch {
    button.textContent = 'Not copied'
    say('The browser does not let this page copy. Select the text and copy it by the keyboard.')
  }
  setTimeout(() => (button.textContent = label), SHOWN)
}

/** Makes a button copy what `text` gives. `said` is told in words how it went. */
export function copies(button: HTMLButtonElement, text: () => string, said: HTMLElement) {
  button.addEventListener('click', () => void copy(text(), button, words => { said.textContent = words }))
}
