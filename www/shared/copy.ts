// Buttons that copy a text.

/**
 * Makes a button copy what `text` gives, and say so. `said` is told in words what happened, for those who do not see
 * the button.
 */
export function copies(button: HTMLButtonElement, text: () => string, said: HTMLElement) {
  const label = button.textContent
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text())
      button.textContent = said.textContent = 'Copied'
    } catch {
      said.textContent = 'The browser does not let this page copy. Select the text, and copy it yourself.'
    }
    setTimeout(() => { button.textContent = label }, 2000)
  })
}
