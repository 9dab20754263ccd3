// The benchmark's report: figures from measured values, and the table of them.

/** Median and range of several values of one quantity. */
export const figure = ({ values, bandwidth, ...rest }) => {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  const median = (low + high) / 2
  const share = rest.bytesPerToken && { share: (median * rest.bytesPerToken) / 1e9 / bandwidth }
  return { ...rest, runs: values.length, median, least: sorted[0], most: sorted.at(-1), ...share }
}

/** The kinds of loads that are timed, and whether they store: by default, and with `--visits`. */
export const LOADS = [
  ['cold', 'from the server', true],
  ['stored', 'from storage']
]
export const VISITS = [
  ['first', 'first visit', true],
  ['second', 'second visit'],
  ['notStored', 'not storing, first visit'],
  ['again', 'not storing, again']
]

/** The figures of several loads of the given kinds, as `loadTimes` in page.mjs gives them. */
export const loadFigures = (loads, kinds = LOADS) =>
  kinds.flatMap(([kind, where, stores = false]) => {
    const times = name => loads.map(load => load[kind][name])
    return [
      { what: `load ${where}`, unit: 's', values: times('whole').map(ms => ms / 1000) },
      ...(stores
        ? [{ what: `load and store, ${where}`, unit: 's', values: times('stored').map(ms => ms / 1000) }]
        : []),
      { what: `first answer's kernels compiled, ${where}`, unit: 'ms', values: times('compiled') },
      { what: `ready to all kernels compiled, ${where}`, unit: 'ms', values: times('rest') },
      { what: `last byte to ready, ${where}`, unit: 'ms', values: times('ready') },
      { what: `last byte to first token, ${where}`, unit: 'ms', values: times('token') },
      ...[
        ['renderer', "in the page's process"],
        ['browser', "in the browser's"],
        ['together', "in all but the GPU's"]
      ].map(([process, whose]) => ({
        what: `memory ${whose}, ${where}`,
        unit: 'MiB',
        values: loads.map(load => (load[kind].most[process] ?? 0) / (1 << 20))
      }))
    ]
  })

/** One result of `lookups` in page.mjs with its gain: how many times as fast. */
export const lookupGain = ({ plain, lookup, ...found }) => {
  const [slow, fast] = [
    ['without prompt lookup', plain],
    ['with prompt lookup', lookup]
  ].map(([what, values]) => figure({ what, unit: 'tok/s', values }))
  return {
    ...found,
    plain: slow,
    lookup: fast,
    gain: fast.median / slow.median,
    acceptedPerPass: found.acceptedTokens / Math.max(1, found.draftPasses)
  }
}

const megabytes = bytes => (bytes / 1e6).toFixed(bytes < 1e6 ? 2 : 1)
const percent = share => `${(100 * share).toFixed(1)} %`

const row = ({ what, unit, runs, median, least, most }, width = 44) =>
  `${what.padEnd(width)} ${median.toFixed(1).padStart(9)} ${unit.padEnd(6)} ` +
  `(${least.toFixed(1)} to ${most.toFixed(1)}, n=${runs})`

/** A figure with its share of the memory's speed, where that is known. */
const figureLine = ({ bytesPerToken, share, ...rest }) =>
  row(rest) +
  (bytesPerToken
    ? `  ${megabytes(bytesPerToken)} MB a token, ${percent(share)} of memory's speed`
    : '')

const leftOutLine = ({ what, seconds }) =>
  `left out, it would take ${(seconds / 60).toFixed(0)} min: ${what}`

/** The report of `--visits`. */
export const visitsTable = ({ browser, figures }) =>
  [browser, '', ...figures.map(figure => row(figure, 60))].join('\n')

/** The report of `--embed`. */
export const embedTable = ({ browser, info, figures }) =>
  [`${info.name} on ${info.adapter || info.backend}, ${browser}`, '', ...figures.map(figure => row(figure))].join('\n')

/** The report of `--limits`. */
export function limitsTable({ browser, info, limits }) {
  const lines = [`${info.name} on ${info.adapter || 'an adapter without a name'}, ${browser}`]
  for (const { name, kernels, dispatchesPerToken, figures, leftOut } of limits) {
    lines.push('', `${name}: ${dispatchesPerToken} dispatches per token`, `kernels: ${kernels.join(' ')}`)
    lines.push(...figures.map(figureLine), ...leftOut.map(leftOutLine))
  }
  return lines.join('\n')
}

export function table({
  browser,
  info,
  bandwidth,
  figures,
  leftOut,
  lookups,
  memory,
  profiles,
  soak
}) {
  const lines = [
    `${info.name} on ${info.adapter || 'an adapter without a name'}, ${browser}`,
    [
      `${(info.bytes / 1e9).toFixed(2)} GB file`,
      `${(info.gpuBytes / 1e9).toFixed(2)} GB on the GPU`,
      ...(info.streamedLayers ? [`${info.streamedLayers} layers streamed`] : []),
      ...(memory ? [`${megabytes(memory.wasm)} MB of wasm memory`] : []),
      `${info.dispatchesPerToken} dispatches per token`
    ].join(', '),
    bandwidth
      ? `memory read at ${bandwidth.toFixed(1)} GB/s at best`
      : 'no timestamps: neither bytes nor shares',
    `kernels: ${info.kernels.join(' ')}`,
    ''
  ]
  lines.push(...figures.map(figureLine), ...leftOut.map(leftOutLine))
  if (lookups.length > 0) {
    const [{ tokens, promptTokens }] = lookups
    lines.push(
      '',
      `prompt lookup: ${tokens} tokens after ${promptTokens} that count up and begin again; ` +
        'the same tokens without it'
    )
  }
  for (const {
    changed,
    given,
    gain,
    draftPasses,
    draftedTokens,
    acceptedPerPass,
    plain,
    lookup
  } of lookups) {
    const copied = changed ? `one in ${changed} replaced` : 'copied unchanged'
    const what = given ? `${copied}, ${given}` : copied
    const drafted = draftedTokens / Math.max(1, draftPasses)
    lines.push(
      `${what}: ${gain.toFixed(2)} times as fast; draft passes: ${draftPasses}, ` +
        `accepted in each: ${acceptedPerPass.toFixed(2)} of ${drafted.toFixed(2)} tokens`
    )
    lines.push(...[plain, lookup].map(figure => `  ${row(figure, 42)}`))
  }
  for (const { context, tokens, drawn, kernels } of profiles) {
    const total = kernels.reduce((sum, { microseconds }) => sum + microseconds, 0)
    const how = drawn ? `, ${drawn}` : ''
    lines.push('', `${tokens} tokens after ${context}${how}: ${total.toFixed(0)} us in kernels`)
    for (const { kernel, calls, microseconds, bytes, gigabytesPerSecond, share } of kernels) {
      const each = (microseconds / calls).toFixed(1).padStart(8)
      const all = microseconds.toFixed(0).padStart(8)
      const time = `${String(calls).padStart(4)} x ${each} us = ${all} us`
      const speed = `${gigabytesPerSecond.toFixed(1).padStart(8)} GB/s`
      const rate = `${megabytes(bytes).padStart(8)} MB ${speed} ${percent(share).padStart(7)}`
      lines.push(`  ${kernel.padEnd(28)} ${time}  ${rate}`)
    }
  }
  if (soak) {
    lines.push(
      '',
      `${soak.tokens} tokens in ${soak.chats} chats: the first at ${soak.first.toFixed(1)} tok/s, ` +
        `the last at ${soak.last.toFixed(1)} ` +
        `(${soak.lastAtFirst.toFixed(1)} at the same positions when first reached)`,
      `thousand by thousand: ${soak.rates.map(rate => rate.toFixed(1)).join(', ')} tok/s`,
      `wasm memory: ${soak.wasmBytesBefore} bytes after the first token, ` +
        `${soak.wasmBytesAfter} at the end; ` +
        `GPU buffers: ${soak.gpuBytesBefore} bytes, ${soak.gpuBytesAfter} at the end`
    )
  }
  return lines.join('\n')
}
