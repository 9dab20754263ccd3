/**
 * The values of a JSON text that comes in parts, each time that it has changed. `begun` is its
 * beginning. Called when the first part has come, or when there is none.
 */
export async function *partials<T>(
  texts: AsyncIterable<string>, begun = () => ''
): AsyncGenerator<T, void, undefined> {
  let [text, last] = ['', '']
  const close = closing()
  const isNew = (closed: string) => closed !== last && (last = closed) !== ''
  for await (const more of texts) {
    const part = text ? more : begun() + more
    text += part
    const closed = close(part)
    if (isNew(closed)) yield* parsed<T>(closed)
  }
  text ||= begun()
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
 * Reads a JSON text that comes in parts. Gives each time all of it so far, with its open strings,
 * arrays and objects closed. A key, a number or a word that may go on is left out. Empty if nothing
 * is left. A text that is no JSON becomes none.
 */
export function closing(): (more: string) => string {
  let text = ''
  /** Up to here the text is read. So each part is read once, but for a string that it is in. */
  let at = 0
  let isKey = false
  /** The brackets that would close the text up to `at`, the innermost first. */
  let ends = ''
  /** The index up to which the text can be given, and the brackets that would close it there. */
  let [kept, missing] = [0, '']
  const keep = (end: number) => { [at, kept, missing] = [end, end, ends] }
  return more => {
    text += more
    while (at < text.length) {
      const c = text[at]!
      if (c === '"') {
        const end = endOf(STRING, text, at)
        if (end === undefined) {
          if (isKey) break
          return `${text.slice(0, endOf(BEGUN, text, at))}"${ends}`
        }
        if (isKey) at = end
        else keep(end)
      } else if (c === '{' || c === '[') {
        ends = (c === '{' ? '}' : ']') + ends
        isKey = c === '{'
        keep(at + 1)
      } else if (c === '}' || c === ']') {
        ends = ends.slice(1)
        isKey = false
        keep(at + 1)
      } else if (c === ',' || c === ':') {
        isKey = c === ',' && ends.startsWith('}')
        at++
      } else if (/\s/.test(c)) {
        at++
      } else {
        const end = endOf(OTHER, text, at) ?? text.length
        // A number at the end may go on.
        if (end === text.length) break
        keep(end)
      }
    }
    return text.slice(0, kept) + missing
  }
}

function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}
