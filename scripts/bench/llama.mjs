// `npm run bench -- --peer wllama` and `--peer node-llama-cpp`: the same file in tritloom and in a build of llama.cpp,
// one after the other in one run, on one thread and on all.
//
// The peer comes from npm, the first time that it is asked for. Each engine has a browser or a process of its own, so
// that one that does not answer, or takes all memory, ends alone.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { inRoot } from '../paths.mjs'
import { isExecutable, npm, runQuietly } from '../process.mjs'
import { Stop } from '../report.mjs'
import { chromiumFlags, LoneBrowser } from './alone.mjs'
import { measureInPage } from './llama-page.mjs'
import { lineOf } from './rates.mjs'
import { figure } from './table.mjs'

/**
 * The packages, which npm has. `parts` are packages that `name` needs and npm would choose by itself, with those for every graphics
 * card beside.
 * @type {Record<string, { name: string, version: string, parts?: string[] }>}
 */
const PEERS = {
  wllama: { name: '@wllama/wllama', version: '3.13.0' },
  'node-llama-cpp': {
    name: 'node-llama-cpp',
    version: '3.22.1',
    parts: [`@node-llama-cpp/${{ darwin: 'mac', win32: 'win' }[process.platform] ?? process.platform}-${process.arch}`]
  }
}

/** The peers that are builds of llama.cpp. */
export const LLAMA_PEERS = Object.keys(PEERS)

/** Lengths of contexts and prompts, unless `--decode` and `--prefill` give others. */
export const LLAMA_LENGTHS = { decode: '16', prefill: '256' }

/** The folder of a peer's package, which is fetched if it is not there. */
export const fetchPeer = async peer => {
  const { name, version, parts = [] } = PEERS[peer]
  const home = inRoot('target', 'peers', `${peer}-${version}`)
  const folder = join(home, 'node_modules', name)
  if (existsSync(join(home, 'whole'))) return folder
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'package.json'), '{ "private": true }')
  const [command, ...args] = npm()
  const packages = [name, ...parts].map(name => `${name}@${version}`)
  try {
    await runQuietly(
      command,
      [...args, 'install', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', ...packages],
      { cwd: home, log: 'bench-npm' }
    )
  } catch (error) {
    throw new Stop(`--peer ${peer}: npm does not give ${packages.join(' and ')}.\n${error.message}`)
  }
  writeFileSync(join(home, 'whole'), '')
  return folder
}

/** Seconds that an engine may take in all: its load, and each quantity twice, because a stopped answer may go on. */
const limitOf = ({ decode, prefill, patience }) => patience * (1 + 2 * (decode.length + prefill.length)) + 30

/** Rejects if `work` takes longer than an engine may. */
const within = (work, how) => {
  let timer
  const late = new Promise((_, reject) => {
    const error = new Error(`it has not ended after ${limitOf(how)} s`)
    timer = setTimeout(reject, 1000 * limitOf(how), error)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** In a browser of its own. */
const inBrowser = async (engine, { executable, flags, address, ...how }) => {
  const browser = await LoneBrowser.open(executable, chromiumFlags(flags), `${address}/scripts/bench/alone.html`)
  try {
    const { answer } = await within(browser.ask(measureInPage, { engine, ...how }), how)
    return answer
  } finally {
    await browser.close()
  }
}

/** The output of a program, until it closes that. The program is ended then, or if it takes longer than an engine may. */
const outputWithin = async (command, args, how) => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const stop = () => child.kill('SIGKILL')
  process.once('exit', stop)
  try {
    const errors = text(child.stderr)
    const output = await within(text(child.stdout), how)
    if (output) return output
    const said = (await within(errors, how)).trim().split('\n').at(-1)
    throw new Error(`it ended without figures: ${said}`)
  } finally {
    process.off('exit', stop)
    stop()
  }
}

/** The command line of this repository. */
const NATIVE = inRoot('target', 'release', 'tritloom')

/** The quantities of a measurement as the command line calls them. */
const inReport = ({ decode, prefill }) => [
  ...decode.map(length => `decode, ${length} tokens of context`),
  ...prefill.map(length => `prefill, ${length}-token prompt`)
]

const native = async ({ file, threads, ...how }) => {
  if (!isExecutable(NATIVE)) throw new Error('there is no target/release/tritloom')
  const { decode, prefill, tokens, runs, patience, context } = how
  const given = { model: file, backend: 'cpu', threads, decode, prefill, tokens, runs, patience, context, loads: 1 }
  const options = Object.entries(given).map(([name, value]) => `--${name}=${value}`)
  const { figures, info } = JSON.parse(await outputWithin(NATIVE, ['bench', '--json', ...options], how))
  const found = inReport(how).map(what => {
    const measured = figures.find(figure => figure.what === what)
    return measured ?? { why: `it would take more than ${patience} s` }
  })
  return { found, info, threads }
}

const nodeLlamaCpp = async ({ file, folder, ...how }) => {
  const given = { library: join(folder, 'dist', 'index.js'), model: file, ...how }
  const script = inRoot('scripts', 'bench', 'llama-node.mjs')
  return JSON.parse(await outputWithin(process.execPath, [script, JSON.stringify(given)], how))
}

/** The engines of a comparison, the peer last, each with the function that measures it. */
const ENGINES = {
  wllama: [
    ['tritloom', how => inBrowser('tritloom', how)],
    ['wllama', how => inBrowser('wllama', how)]
  ],
  'node-llama-cpp': [
    ['tritloom, native', native],
    ['tritloom, Chromium', how => inBrowser('tritloom', how)],
    ['node-llama-cpp', nodeLlamaCpp]
  ]
}

/** Tokens of context, for the longest of the answers. */
const contextFor = ({ decode, prefill, tokens }) =>
  256 * Math.ceil((Math.max(...decode.map(length => length + tokens), ...prefill) + 1) / 256)

/**
 * Measures each engine on the model in `file`, which a server has at `address`.
 * @param {string} file
 * @param {string} address
 * @param {{
 *   peer: string, folder: string, executable: string, flags: string[], backend: string, threads?: number,
 *   decode: number[], prefill: number[], tokens: number, runs: number, patience: number
 * }} options
 * @param {(what: string) => void} tell
 */
export const compareLlama = async (file, address, options, tell) => {
  const { peer, backend, threads: given, tokens, decode, prefill } = options
  const all = availableParallelism()
  const counts = given ? [given] : backend === 'cpu' ? [...new Set([1, all])] : [all]
  const engines = ENGINES[peer]
  const how = { ...options, file: resolve(file), address, context: contextFor(options) }
  const measured = []
  for (const threads of counts) {
    const sides = []
    let texts
    for (const [name, measure] of engines) {
      tell(`${name}, threads: ${threads}`)
      const side = await measure({ ...how, threads, texts }).catch(error => ({ why: lineOf(error) }))
      texts ??= side.texts
      sides.push(side)
    }
    measured.push({ threads, sides })
  }
  const { name, version } = PEERS[peer]
  const [{ model }] = cpus()
  return llamaComparison({
    peer: `${name} ${version}`, backend, machine: { cpu: model, threads: availableParallelism() },
    engines: engines.map(([name]) => name), tokens, decode, prefill, measured
  })
}

/** The report, from what was measured of each engine: `found`, or `why` there is nothing. */
export const llamaComparison = ({ measured, decode, prefill, ...rest }) => {
  const all = measured.flatMap(({ sides }) => sides)
  const quantities = [
    ...decode.map(length => `decode, ${length} tokens of context`),
    ...prefill.map(length => `prompt of ${length} tokens`)
  ]
  const cell = ({ found, why, threads }, index) => {
    if (!found) return { why }
    const { values, ...given } = found[index]
    if (values?.length === 0 || !(values || given.runs)) return { why: given.why }
    const { runs, median, least, most } = values ? figure({ values }) : given
    return { runs, median, least, most, threads }
  }
  return {
    ...rest,
    browser: all.map(({ userAgent }) => /Chrom\w+\/[\d.]+/.exec(userAgent)?.[0]).find(Boolean),
    info: all.map(({ info }) => info).find(Boolean),
    rows: measured.flatMap(({ threads, sides }) => quantities.map((what, index) => ({
      what, unit: 'tok/s', threads, figures: sides.map(side => cell(side, index))
    })))
  }
}

const WIDTHS = { what: 32, threads: 9, figure: 36 }

/** The comparison as text: a column for each engine, and how many times as fast as the peer it is. */
export const llamaTable = ({ peer, backend, machine, browser, info, engines, tokens, rows }) => {
  const missing = []
  const line = ({ what, unit, threads, figures }) => {
    const last = figures.at(-1)
    const cells = figures.map((found, index) => {
      if (found.why !== undefined) {
        missing.push(`${engines[index]}, threads: ${threads}, ${what}: ${found.why}`)
        return '–'.padStart(9).padEnd(WIDTHS.figure)
      }
      const { median, least, most, runs } = found
      const times = last.median && found !== last ? `, ${(median / last.median).toFixed(2)} x` : ''
      const fewer = found.threads === threads ? '' : `, threads: ${found.threads}`
      const [middle, low, high] = [median, least, most].map(value => value.toFixed(1))
      return `${middle.padStart(9)} (${low} to ${high}, n=${runs}${times}${fewer})`.padEnd(WIDTHS.figure)
    })
    return `${`${what}, ${unit}`.padEnd(WIDTHS.what + 7)}${String(threads).padEnd(WIDTHS.threads)}${cells.join('')}`
  }
  const lines = rows.map(line)
  const names = engines.map(name => name.padStart(9).padEnd(WIDTHS.figure)).join('')
  return [
    `${info?.name ?? 'a model'} beside ${peer} on ${backend === 'cpu' ? 'the CPU' : 'the GPU'}: ` +
      `${machine.cpu}, threads: ${machine.threads}; ${browser ?? 'no browser'}`,
    `One file, one run, one engine after the other; answers of ${tokens} tokens. x: times as fast as ${engines.at(-1)}`,
    '',
    `${''.padEnd(WIDTHS.what + 7)}${'threads'.padEnd(WIDTHS.threads)}${names}`,
    ...lines,
    ...missing
  ].map(line => line.trimEnd()).join('\n')
}
