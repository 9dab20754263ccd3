// How many bytes a page downloads of the package, gzipped. A file that is too large stops the build.
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Stop } from '../report.mjs'

/** Bytes of the WebAssembly: what a visitor waits for before the model even starts to come. */
export const BUDGET = 1_000_000
/** Bytes of the module of grammars, which the first answer with a format waits for. */
export const GRAMMAR_BUDGET = 600_000
/** Bytes of each module for the CPU. Only a page without a GPU downloads one of them. */
export const CPU_BUDGET = 1_250_000
/** Bytes of an entry's script with all that it imports, but not what it imports later. */
export const ENTRY_BUDGET = 11_000
/**
 * The worker has wasm-bindgen's script with it, and no chunks: bundlers do not split workers. The browsers' interfaces
 * check all arguments at once, as browsers do, so that nothing of that can be imported later.
 */
const ENTRY_BUDGETS = { './worker': 24_000, './built-in-ai': 14_000, './built-in-ai/polyfill': 14_000 }
/** Scripts that an entry imports later in any case. */
const FOLLOWED = { './worker': ['protocol/answer.js'] }

const kilobytes = (bytes, digits = 0) => `${(bytes / 1000).toFixed(digits)} kB`
const gzipped = bytes => gzipSync(bytes, { level: 9 }).length

/** A size and its budget, in words. Throws if the size is above the budget. */
const within = (what, said, size, budget, digits) => {
  const share = `${((100 * size) / budget).toFixed(0)} %`
  const whole = `${said}${kilobytes(size, digits)} gzipped of ${kilobytes(budget)} (${share})`
  if (size > budget) throw new Stop(`${what} is over its budget: ${whole}`)
  return whole
}

/** The size of a module of WebAssembly in words; throws above the budget. */
export const sizeAgainstBudget = (name, path, budget) => {
  const wasm = readFileSync(path)
  return within(`The module ${name}`, `${name} ${kilobytes(wasm.length)}, `, gzipped(wasm), budget)
}

/** The size of each entry of the package in words, a line each; throws above a budget. */
export const entriesAgainstBudget = pkg => {
  const { name, exports } = JSON.parse(readFileSync(join(pkg, 'package.json'), 'utf8'))
  return Object.entries(exports)
    .filter(([, target]) => target.default?.endsWith('.js'))
    .map(([entry, target]) => {
      const scripts = new Set()
      for (const script of [posix.normalize(target.default), ...(FOLLOWED[entry] ?? [])])
        withImports(pkg, script, scripts)
      const size = gzipped([...scripts].map(script => readFileSync(join(pkg, script), 'utf8')).join('\n'))
      const called = `${name}${entry.slice(1)}`
      return within(called, `${called} `, size, ENTRY_BUDGETS[entry] ?? ENTRY_BUDGET, 1)
    })
}

/**
 * The files that are counted together: a page downloads one of the modules, by what computes in it, and none of `node/`
 * and of entries that it does not import.
 */
const COUNTED = {
  wasm: /\btritloom_bg\.wasm$/,
  cpu: /\btritloom-relaxed\.wasm$/,
  scripts: /^(?!(?:node|widget|ai-sdk|built-in-ai|search|weights)\b).*(?<!\btritloom-[\w-]+)\.js$/,
  grammar: /\bgrammar\.wasm$/
}

/** Kilobytes, gzipped, of the modules and of all scripts, each file by itself: those of the README. */
export const sizes = pkg => {
  const names = readdirSync(pkg, { recursive: true })
  const of = pattern =>
    names
      .filter(name => pattern.test(name))
      .reduce((sum, name) => sum + gzipped(readFileSync(join(pkg, name))), 0)
  return Object.fromEntries(
    Object.entries(COUNTED).map(([what, pattern]) => [what, Math.round(of(pattern) / 1000)])
  )
}

/** The same in words. */
export const inAll = pkg => {
  const { wasm, scripts } = sizes(pkg)
  return `in all ${wasm} kB of WebAssembly and ${scripts} kB of JavaScript`
}

const IMPORTED = /^(?:import|export)\b[^'"(=;]*?['"](\.{1,2}\/[\w./-]+)['"]/gm

/** A script's name and those that it imports at once, itself or through others. */
const withImports = (pkg, name, found = new Set()) => {
  if (found.has(name)) return found
  found.add(name)
  const code = readFileSync(join(pkg, name), 'utf8')
  for (const [, imported] of code.matchAll(IMPORTED))
    withImports(pkg, posix.join(posix.dirname(name), imported), found)
  return found
}
