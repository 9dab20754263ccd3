// From a text of the page to the prompt for its summary.

/** There is no text to sum up, or no way to it. */
export class Unreadable extends Error {
  override name = 'no-text'
}

/** The wording that the bundled model was trained with; any chat model understands it. */
export function tldrPrompt(text: string): string {
  const tidy = text
    .trim()
    .replace(/[^\S\n]+/g, ' ')
    .replace(/\s*\n\s*\n\s*/g, '\n\n')
  if (tidy === '') throw new Unreadable('There is no text to sum up.')
  return `TL;DR of this story:\n\n${tidy}`
}
