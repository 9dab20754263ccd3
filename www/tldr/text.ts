// Makes a text of the page into a prompt for its summary.

/** There is no text to sum up, or it cannot be found. */
export class Unreadable extends Error {
  override name = 'no-text'
}

/**
 * The prompt, in the wording that the bundled model was trained with. Other chat models understand
 * it too. Throws `Unreadable` if there is no text.
 */
export function tldrPrompt(text: string): string {
  const tidy = text
    .trim()
    .replace(/[^\S\n]+/g, ' ')
    .replace(/\s*\n\s*\n\s*/g, '\n\n')
  if (tidy === '') throw new Unreadable('There is no text to sum up.')
  return `TL;DR of this story:\n\n${tidy}`
}
