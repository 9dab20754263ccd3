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

/** Seconds from milliseconds, with as many digits as matter. */
export function formatSeconds(milliseconds: number): string {
  const seconds = milliseconds / 1000
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
}

/** A rate of tokens: `41 tokens/s`, `6.2 tokens/s`. */
export function formatRate(tokensPerSecond: number): string {
  return `${tokensPerSecond < 10 ? tokensPerSecond.toFixed(1) : Math.round(tokensPerSecond)} tokens/s`
}
