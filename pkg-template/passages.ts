// Passages of texts, which end at sentences.

/** A word that ends with a period and may be an abbreviation: `Mr.`, `Prof.`, `U.S.` */
const ABBREVIATION = /(?:^|\P{L})(?:\p{Lu}\p{L}{0,3}|(?:\p{L}\.)+\p{L})\.\s*$/u

/** Where sentences surely end: not after a word that may be an abbreviation. */
export const sentenceEnds = (text: string): number[] =>
  ends(text, 'sentence').filter(end => !ABBREVIATION.test(text.slice(Math.max(0, end - 20), end)))

/**
 * Splits a text into passages that fit, at the ends of sentences if possible. `share` gives the
 * share of the room for a passage that a text takes. It is at most 1 if the text fits.
 */
export async function split(
  text: string, share: (text: string) => Promise<number>, stop: AbortSignal
): Promise<string[]> {
  const trimmed = text.trim()
  if (trimmed === '' || stop.aborted) return []
  const times = await share(trimmed)
  if (times <= 1 || trimmed.length === 1) return [trimmed]
  const passages: string[] = []
  // A tenth more than needed, because tokens are not spread evenly.
  const count = Math.min(trimmed.length, Math.ceil(times * 1.1))
  for (const shorter of divide(trimmed, count)) {
    passages.push(...await split(shorter, share, stop))
  }
  return passages
}

/**
 * How far a cut may be from the position that gives passages of equal length, in UTF-16 code units.
 */
const MAX_SHIFT = 2000

/** Cuts a text of at least `count` code units into `count` passages of about the same length. */
export function divide(text: string, count: number): string[] {
  const length = text.length / count
  const shift = Math.max(1, Math.min(MAX_SHIFT, Math.floor(length / 2)))
  const goals = Array.from({ length: count - 1 }, (_, n) => Math.round((n + 1) * length))
  const borders = [0, ...goals.map(goal => cutNear(text, goal, shift)), text.length]
  return borders.slice(1).map((end, n) => text.slice(borders[n], end))
}

/**
 * Where to cut near `goal`: between sentences, else between words, else between characters. It
 * looks only at the text nearby, because the time that browsers take grows with the square of the
 * length.
 */
function cutNear(text: string, goal: number, shift: number): number {
  const start = Math.max(0, goal - shift)
  const around = text.slice(start, goal + shift)
  const distance = (end: number) => Math.abs(start + end - goal)
  const kinds = [
    () => sentenceEnds(around), () => ends(around, 'sentence'), () => ends(around, 'word'), () => ends(around, 'grapheme')
  ]
  for (const kind of kinds) {
    const found = kind().filter(end => end < around.length)
    if (found.length > 0) return start + found.reduce((a, b) => distance(b) < distance(a) ? b : a)
  }
  return goal
}

/**
 * Where the sentences, words or characters of a text end. Those of white space alone are left out.
 */
const ends = (text: string, granularity: 'sentence' | 'word' | 'grapheme'): number[] =>
  Array.from(new Intl.Segmenter(undefined, { granularity }).segment(text))
    .filter(({ segment }) => segment.trim() !== '')
    .map(({ index, segment }) => index + segment.length)
