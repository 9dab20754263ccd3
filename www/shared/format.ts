// Numbers as people read them.

/** Bytes in decimal units, as browsers and model pages give them: `10.3 MB`, `1.19 GB`. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  let power = 0
  while (bytes >= 1000 && power < units.length - 1) {
    bytes /= 1000
    power += 1
  }
  return `${power === 0 ? bytes : Number(bytes.toPrecision(3))} ${units[power]}`
}

/** A count with the reader's thousands separators. */
export function formatCount(count: number): string {
  return count.toLocaleString()
}

/** Milliseconds as seconds, with one decimal below ten: `0.3 s`, `12 s`. */
export function formatSeconds(milliseconds: number): string {
  const seconds = milliseconds / 1000
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
}

/** How long something will still take: `8 s left`, `4 min left`, `1 h 5 min left`. */
export function formatTimeLeft(seconds: number): string {
  if (seconds < 59.5) return `${Math.max(1, Math.round(seconds))} s left`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min left`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`
}

/** A rate of tokens: `41 tokens/s`, `6.2 tokens/s`. */
export function formatRate(tokensPerSecond: number): string {
  const digits = tokensPerSecond < 10 ? 1 : 0
  return `${tokensPerSecond.toFixed(digits)} tokens/s`
}
