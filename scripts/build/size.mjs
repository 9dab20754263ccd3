// The size of the WebAssembly as a page downloads it, against what it may be.
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { Stop } from '../report.mjs'

/** Bytes, gzipped: what a visitor waits for before the model even starts to come. */
export const BUDGET = 1_000_000

const kilobytes = bytes => `${(bytes / 1000).toFixed(0)} kB`

/** Both sizes in words; throws above the budget. */
export const sizeAgainstBudget = path => {
  const wasm = readFileSync(path)
  const gzipped = gzipSync(wasm, { level: 9 }).length
  const share = `${((100 * gzipped) / BUDGET).toFixed(0)} %`
  const said = `wasm ${kilobytes(wasm.length)}, ${kilobytes(gzipped)} gzipped of ${kilobytes(BUDGET)} (${share})`
  if (gzipped > BUDGET) throw new Stop(`The WebAssembly is over its budget: ${said}`)
  return said
}
