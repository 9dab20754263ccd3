// How fast the loaded model is, beside an older report.
import type { KernelTime, ModelInfo } from 'tritloom'
import { describeFailure, formatBytes, type Advice, type Failure } from 'tritloom/words'
import { byId, create, swap } from '../shared/dom.ts'
import type { HeldModel } from '../shared/model/held.ts'
import { failureBox, showNotice } from '../shared/notices.ts'
import { lines } from './charts.ts'
import { measure, readSpeed, type Memory, type Point, type Speed } from './measure.ts'
import { onReport, save } from './report.ts'
import { figure, fillTable, percent, type Cell } from './table.ts'

const ADVICE: Advice = {
  'device-lost': 'Measure again: that brings the model back.'
}

const start = byId('speed-start', HTMLButtonElement)
const stop = byId('speed-stop', HTMLButtonElement)
const saveButton = byId('speed-save', HTMLButtonElement)
const remove = byId('speed-remove', HTMLButtonElement)
const progress = byId('speed-progress', HTMLProgressElement)

let held: HeldModel
let isReady = false
let running: AbortController | undefined
/** The figures of this device, and the report beside them. */
let mine: Speed | undefined
let beside: Speed | undefined

/** Connects the tab. It measures the model that `of` holds. */
export function startSpeed(of: HeldModel) {
  held = of
  start.addEventListener('click', () => void run())
  stop.addEventListener('click', () => running?.abort())
  saveButton.addEventListener('click', () => save('speed', mine))
  remove.addEventListener('click', () => {
    beside = undefined
    show()
  })
  onReport(byId('speed-report', HTMLInputElement), 'speed', content => {
    beside = readSpeed(content)
    show()
    clear()
  }, failure => tell('The report cannot be opened', failure))
}

/** Takes the facts of the model that was loaded, or none. */
export function speedModel(info: ModelInfo | undefined) {
  running?.abort()
  isReady = info !== undefined
  start.disabled = !isReady
}

const clear = () => showNotice('speed', null)
const tell = (title: string, failure: Failure) => showNotice('speed', failureBox(title, failure))

async function run() {
  if (!isReady || running) return
  const { signal } = (running = new AbortController())
  clear()
  swap(start, stop)
  progress.hidden = false
  progress.value = 0
  try {
    mine = await held.use(model => measure(model, signal, share => { progress.value = share }))
    show()
    showNotice('loss', null)
  } catch (error) {
    if (!signal.aborted) tell('The model was not measured', describeFailure(error, ADVICE))
  } finally {
    running = undefined
    swap(stop, start)
    progress.hidden = true
  }
}

/** The runs that are there, with their names in tables and charts. */
const runs = (): { title: string, speed: Speed }[] => [
  ...(mine ? [{ title: 'Here', speed: mine }] : []),
  ...(beside ? [{ title: 'Report', speed: beside }] : [])
]

const MEMORY: { title: string, of: (memory: Memory) => number }[] = [
  { title: 'The file', of: ({ file }) => file },
  { title: 'Held in all, after the load', of: ({ held }) => held },
  { title: 'Of that, keys and values', of: ({ keys }) => keys },
  { title: 'Of that, weights, and what steps need', of: ({ held, keys }) => held - keys },
  { title: 'Keys and values of a text that fills the context', of: ({ cache }) => cache },
  { title: 'Read for a token, with an empty context', of: ({ token }) => token }
]

function show() {
  const all = runs()
  saveButton.disabled = !mine
  remove.hidden = !beside
  byId('speed-found', HTMLElement).hidden = all.length === 0
  byId('speed-facts', HTMLElement).textContent =
    all.map(({ title, speed }) => `${title}: ${speed.model}, ${speed.machine}`).join(' · ')
  showPoints('decode', 'Tokens', all, [
    { title: 'tokens/s', of: point => point.decode, text: figure },
    { title: 'most that memory allows', of: point => point.roof, text: figure }
  ])
  showPoints('first', 'Prompt tokens', all, [{ title: 'milliseconds', of: point => point.first, text: figure }])
  fillTable(byId('memory-table', HTMLTableElement), ['For', ...all.map(({ title }) => title)],
    MEMORY.map(({ title, of }) => ({ name: title, cells: all.map(({ speed }) => formatBytes(of(speed.memory))) })))
  showKernels(all)
}

/** A figure of a point. */
interface Figure {
  title: string
  of(point: Point): number | null
  text(value: number): string
}

/** Figures over the tokens before them, as lines and as a table. A figure that no run has is left out. */
function showPoints(name: 'decode' | 'first', x: string, all: ReturnType<typeof runs>, figures: Figure[]) {
  const contexts = [...new Set(all.flatMap(({ speed }) => speed.points.map(({ context }) => context)))].sort((a, b) => a - b)
  const columns = all.flatMap(({ title, speed }) => figures.map(({ title: figureTitle, of, text }) => {
    const at = new Map(speed.points.map(point => [point.context, of(point)]))
    return { title: `${title}: ${figureTitle}`, values: contexts.map(context => at.get(context) ?? null), text }
  })).filter(({ values }) => values.some(value => value !== null))
  lines(byId(`${name}-chart`, HTMLElement), { x: { title: x, values: contexts }, series: columns })
  fillTable(byId(`${name}-table`, HTMLTableElement), [x, ...columns.map(({ title }) => title)], contexts.map((context, n) => ({
    name: String(context), cells: columns.map(({ values, text }) => values[n] === null ? '' : text(values[n]!))
  })))
}

function showKernels(all: ReturnType<typeof runs>) {
  const reasons = all.filter(({ speed }) => !speed.profile)
    .map(({ title, speed }) => `${title}: ${speed.noProfile ?? 'the report has none'}.`)
  const rates = all.filter(({ speed }) => speed.profile)
    .map(({ title, speed }) => `${title}: ${figure(total(speed.profile!.kernels))} µs of kernels, memory read at ${figure(speed.profile!.bandwidth)} GB/s at best.`)
  byId('kernels-text', HTMLElement).textContent = [...rates, ...reasons].join(' ')
  const times = all.map(({ speed }) => new Map(speed.profile?.kernels.map(kernel => [kernel.kernel, kernel])))
  const names = [...new Set(times.flatMap(kernels => [...kernels.keys()]))]
  const longest = Math.max(0, ...times.flatMap(kernels => [...kernels.values()].map(({ microseconds }) => microseconds)))
  byId('kernels-table', HTMLTableElement).parentElement!.hidden = names.length === 0
  fillTable(byId('kernels-table', HTMLTableElement),
    ['Kernel', ...all.flatMap(({ title }) => [`${title}: time`, 'µs', 'Calls', 'Of the memory’s rate'])],
    names.map(name => ({ name: create('code', '', name), cells: times.flatMap(kernels => cellsOf(kernels.get(name), longest)) })))
}

function cellsOf(kernel: KernelTime | undefined, longest: number): Cell[] {
  if (!kernel) return ['', '', '', '']
  const bar = create('meter')
  bar.max = longest
  bar.value = kernel.microseconds
  bar.ariaLabel = `${kernel.kernel}: ${figure(kernel.microseconds)} µs`
  return [bar, figure(kernel.microseconds), String(kernel.calls), percent(kernel.share)]
}

const total = (kernels: KernelTime[]): number => kernels.reduce((sum, { microseconds }) => sum + microseconds, 0)
