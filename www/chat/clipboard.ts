// Copies texts, and says whether it went well.
import { say } from './speaker.ts'

/** Milliseconds for which a button says how it went. */
const SHOWN = 2000

/** Copies a text. The button says how it went. */
export async function copy(text: string, button: HTMLButtonElement) {
  const name = button.textContent
  let told = 'Copied'
  try {
    await navigator.clipboard.writeText(text)
    say('Copied.')
  } catch {
    told = 'Not copied'
    say('The browser does not let this page copy. Select the text and copy it by the keyboard.')
  }
  button.textContent = told
  setTimeout(() => (button.textContent = name), SHOWN)
}
