// Key points, as a model writes them: a line for each.

/** The mark that a model puts before a point: a dash, a star, a dot, or a number. */
const MARK = /^(?:[-*•–]|\d{1,2}[.)])(?:\s+|$)/

export interface Points {
  /** A line before the points that only introduces them. */
  introduction: string
  points: string[]
}

/** The points of a text, also of one that is still being written. */
export function pointsOf(text: string): Points {
  const lines = text.split('\n').map(line => line.trim()).filter(line => line.replace(MARK, '') !== '')
  const introduces = lines[0]?.endsWith(':') && !MARK.test(lines[0])
  const introduction = introduces ? lines.shift()! : ''
  return { introduction, points: lines.map(line => line.replace(MARK, '')) }
}
