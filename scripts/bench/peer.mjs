// `npm run bench -- --peer DIR`: the same file in tritloom and in another engine, in one browser
// and one run.
//
// DIR holds a built 0xBitNet: an index.js that exports `BitNet` with `load(url)` and
// `generate(text, options)`, and prints how many tokens its prompt has.
import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { Stop } from '../report.mjs'
import { chromiumFlags, LoneBrowser } from './alone.mjs'
import { answerBoth, loadBoth } from './peer-page.mjs'
import { figure } from './table.mjs'

/** The words of the prompts, unless --prefill gives others. The peer cannot answer longer ones. */
export const PROMPTS = '6,100,400'

/** The folder of the peer, as an absolute path. */
export const peerFolder = folder => {
  const path = resolve(folder)
  if (!existsSync(join(path, 'index.js')))
    throw new Stop(`--peer ${folder}: there is no index.js in it.`)
  return path
}

/**
 * Measures both, in a browser with a profile on disk and without a debugger. The peer stores the
 * model as one record, which a private window cannot.
 */
export const comparePeer = async (executable, args, address, options, tell) => {
  const { peer, prefill, tokens, runs, patience, 'matrix-units': matrixUnits } = options
  const load = { patience, gpu: { features: { matrixUnits } } }
  const browser = await LoneBrowser.open(executable, chromiumFlags(args), `${address}/scripts/bench/alone.html`)
  try {
    tell('loads of both')
    const { answer: cold } = await browser.ask(loadBoth, { ...load, cache: 'refresh' })
    const { answer: stored } = await browser.ask(loadBoth, { ...load, cache: 'only' })
    const answers = []
    for (const words of prefill) {
      tell(`answers of both, ${words} words`)
      answers.push((await browser.ask(answerBoth, { words, tokens, runs, patience })).answer)
    }
    return comparison(basename(peer), { cold, stored, answers })
  } finally {
    await browser.close()
  }
}

/** The report, from what the page measured. A side without values has `null`. */
export const comparison = (peer, { cold, stored, answers }) => {
  const row = (what, unit, sides) => {
    const side = values => (values.length > 0 ? figure({ values }) : null)
    return { what, unit, ours: side(sides.ours), peer: side(sides.peer) }
  }
  const load = (where, { ours, peer }) => {
    const times = name => ({ ours: [ours[name] / 1000], peer: [peer[name] / 1000] })
    return [
      row(`load ${where}`, 's', times('loaded')),
      row(`load to the first token, ${where}`, 's', times('first'))
    ]
  }
  const timed = (answer, name) => ({
    ours: answer.ours.map(times => times[name]).filter(value => value !== undefined),
    peer: answer.peer.map(times => times[name]).filter(value => value !== undefined)
  })
  return {
    peer,
    browser: /Chrom\w+\/[\d.]+/.exec(cold.userAgent)?.[0] ?? cold.userAgent,
    info: cold.info,
    rows: [
      ...load('from the server', cold),
      ...load('from storage', stored),
      ...answers.flatMap(answer => [
        row(
          `time to first token, ${answer.promptTokens}-token prompt`,
          'ms',
          timed(answer, 'first')
        ),
        row(`decode, ${answer.promptTokens} tokens of context`, 'tok/s', timed(answer, 'decode'))
      ])
    ]
  }
}

const WIDTHS = { what: 44, side: 34 }

/** The comparison as text, a column for each side. */
export const comparisonTable = ({ peer, browser, info, rows }) => {
  const side = value => {
    if (!value) return '        –'.padEnd(WIDTHS.side)
    const [median, least, most] = [value.median, value.least, value.most].map(n => n.toFixed(1))
    return `${median.padStart(9)} (${least} to ${most}, n=${value.runs})`.padEnd(WIDTHS.side)
  }
  const columns = ['tritloom', peer].map(name => name.padStart(9).padEnd(WIDTHS.side))
  return [
    `${info.name} on ${info.adapter}, ${browser}: one file, one browser, one run`,
    '',
    `${''.padEnd(WIDTHS.what + 7)}${columns.join('')}`,
    ...rows.map(
      ({ what, unit, ours, peer }) =>
        `${what.padEnd(WIDTHS.what)} ${unit.padEnd(6)}${side(ours)}${side(peer)}`
    )
  ]
    .map(line => line.trimEnd())
    .join('\n')
}
