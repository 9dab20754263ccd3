/** The values of a JSON text that comes in parts, each time that it has changed. */
export async function *partials<T>(texts: AsyncIterable<string>): AsyncGenerator<T, void, undefined> {
  let [text, last] = ['', '']
  const isNew = (closed: string) => closed !== last && (last = closed) !== ''
  for await (const more of texts) {
    text += more
    const closed = close(text)
    if (isNew(closed)) yield* parsed<T>(closed)
  }
  // A number or a word at the end is whole only now.
  if (isNew(text.trimEnd())) yield* parsed<T>(text)
}

function *parsed<T>(text: string): Generator<T> {
  let value: T
  try {
    value = JSON.parse(text)
  } catch {
    return
  }
  yield value
}

/** A string. */
const STRING = /"(?:[^"\\]|\\.)*"/sy
/** A string without its end. If an escape is not complete, it ends before that. */
const BEGUN = /"(?:[^"\\]|\\u[\da-f]{4}|\\[^u])*/iy
/** A number or a word. */
const OTHER = /[^\s,:\]}[{"]+/y

/**
 * Closes the open strings, arrays and objects of a JSON text that is not complete. A key, a number or a
 * word that may go on is left out. Empty if nothing is left. A text that is no JSON becomes none.
 */
export function close(text: string): string {
  /** The brackets that are missing at the end, the innermost first. */
  let ends = ''
  let kept = ''
  let isKey = false
  const keep = (end: number) => { kept = text.slice(0, end) + ends }
  for (let at = 0; at < text.length;) {
    const c = text[at]!
    if (c === '"') {
      const end = endOf(STRING, text, at)
      if (end === undefined) return isKey ? kept : `${text.slice(0, endOf(BEGUN, text, at))}"${ends}`
      if (!isKey) keep(end)
      at = end
    } else if (c === '{' || c === '[') {
      ends = (c === '{' ? '}' : ']') + ends
      isKey = c === '{'
      keep(++at)
    } else if (c === '}' || c === ']') {
      ends = ends.slice(1)
      isKey = false
      keep(++at)
    } else if (c === ',' || c === ':') {
      isKey = c === ',' && ends.startsWith('}')
      at++
    } else if (/\s/.test(c)) {
      at++
    } else {
      at = endOf(OTHER, text, at) ?? text.length
      // A number at the end may go on.
      if (at < text.length) keep(at)
    }
  }
  return kept
}

function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}
