// The weights of a file: its tensors, figures over the layers, and a tensor as a picture.
import { MAX_VALUES, openWeights, type FileTensor, type WeightFile } from 'tritloom/weights'
import { describeFailure, formatBytes, formatCount, type Advice, type Failure } from 'tritloom/words'
import { BUNDLED_MODEL } from '../shared/bundled.ts'
import { isLight } from '../shared/colour.ts'
import { byId, create, swap } from '../shared/dom.ts'
import { failureBox, showNotice } from '../shared/notices.ts'
import { readContents, type Contents, type ReadTensor } from './contents.ts'
import { heatMap, MEASURES, shareOf, within } from './heat.ts'
import { colourOf, draw, partOf, pictureOf } from './picture.ts'
import { onReport, save } from './report.ts'
import { figure, fillTable, percent } from './table.ts'

const ADVICE: Advice = {
  'bad-gguf': 'Choose a whole file in GGUF form.',
  'http': 'Check the address, or download the file and choose it here.'
}

/** The most rows and columns of a picture. */
const SIDE = 512

const facts = byId('weights-facts', HTMLElement)
const readButton = byId('weights-read', HTMLButtonElement)
const stopButton = byId('weights-stop', HTMLButtonElement)
const loadButton = byId('weights-load', HTMLButtonElement)
const progress = byId('weights-progress', HTMLProgressElement)
const figureChoice = byId('heat-measure', HTMLSelectElement)
const pictureForm = byId('picture-form', HTMLFormElement)
const firstRow = byId('picture-row', HTMLInputElement)
const firstColumn = byId('picture-column', HTMLInputElement)
const canvas = byId('picture-canvas', HTMLCanvasElement)
const pictureText = byId('picture-text', HTMLElement)

let shown: Contents = { name: '', architecture: '', bytes: 0, tensors: [] }
/** The open file, and where it is from. A report has none. */
let file: WeightFile | undefined
let from: string | File | undefined
/** The tensor of the picture. */
let pictured: FileTensor | undefined
/** Ends what is being read of all tensors, or a file that is being opened. */
let reading = new AbortController()
/** Ends the reading of a picture. */
let picturing = new AbortController()

/** Connects the tab. `load` loads the model whose weights are shown. */
export function startWeights(load: (source: string | File, name: string) => void) {
  figureChoice.append(...MEASURES.map(({ title }, n) => new Option(title, String(n))))
  figureChoice.addEventListener('change', showHeat)
  const chosen = byId('weights-file', HTMLInputElement)
  chosen.addEventListener('change', () => {
    const source = chosen.files?.[0]
    chosen.value = '' // So that the same file can be chosen again.
    if (source) void open(source)
  })
  byId('open-file', HTMLFormElement).addEventListener('submit', event => {
    event.preventDefault()
    void open(byId('weights-address', HTMLInputElement).value)
  })
  byId('weights-bundled', HTMLButtonElement).addEventListener('click', () => void open(BUNDLED_MODEL))
  readButton.addEventListener('click', () => void readAll())
  stopButton.addEventListener('click', () => reading.abort())
  loadButton.addEventListener('click', () => from && load(from, shown.name))
  byId('weights-save', HTMLButtonElement).addEventListener('click', () => save('weights', shown))
  onReport(byId('weights-report', HTMLInputElement), 'weights', content => {
    const report = readContents(content)
    reading.abort()
    picturing.abort()
    file = from = undefined
    show(report)
    clear()
  }, failure => tell('The report cannot be opened', failure))
  pictureForm.addEventListener('submit', event => {
    event.preventDefault()
    void showPicture()
  })
}

const clear = () => showNotice('weights', null)
const tell = (title: string, failure: Failure) => showNotice('weights', failureBox(title, failure))
const fail = (title: string, error: unknown) => tell(title, describeFailure(error, ADVICE))

/** A new reading, in place of the one before. */
function begin(): AbortSignal {
  reading.abort()
  reading = new AbortController()
  return reading.signal
}

async function open(source: string | File) {
  const signal = begin()
  clear()
  facts.textContent = 'Opening …'
  stopButton.hidden = false
  try {
    const opened = await openWeights(source, { signal })
    const { name, architecture, bytes, tensors } = opened
    picturing.abort()
    file = opened
    from = source
    show({ name: name || (typeof source === 'string' ? source : source.name), architecture, bytes, tensors: [...tensors] })
  } catch (error) {
    if (signal.aborted && reading.signal !== signal) return // Another file is being opened.
    facts.textContent = ''
    if (shown.tensors.length > 0) showAll()
    if (!signal.aborted) fail('The file cannot be opened', error)
  } finally {
    if (reading.signal === signal) swap(stopButton, byId('weights-address', HTMLInputElement))
  }
}

function show(next: Contents) {
  shown = next
  pictured = undefined
  byId('picture', HTMLElement).hidden = true
  byId('weights-found', HTMLElement).hidden = false
  readButton.disabled = loadButton.disabled = !file
  showAll()
}

function showAll() {
  const { name, architecture, bytes, tensors } = shown
  facts.textContent = [name, architecture, formatBytes(bytes), `${formatCount(tensors.length)} tensors`, inAll(tensors)]
    .filter(fact => fact).join(' · ')
  showTensors()
  showHeat()
}

/** The shares of all ternary weights that were read; empty if none were. */
function inAll(tensors: readonly ReadTensor[]): string {
  const all: [number, number, number] = [0, 0, 0]
  for (const { found } of tensors) found?.counts?.forEach((count, n) => { all[n]! += count })
  if (all.every(count => count === 0)) return ''
  const [minus, zero, plus] = ([0, 1, 2] as const).map(which => percent(shareOf({ counts: all }, which)!))
  return `all ternary weights read: −1 ${minus}, 0 ${zero}, +1 ${plus}`
}

function showTensors() {
  const columns = ['Tensor', 'Type', 'Shape', 'Size', '−1', '0', '+1', 'Entropy', 'Scales', 'Mean scale']
  const share = (tensor: ReadTensor, which: 0 | 1 | 2) => {
    const found = tensor.found && shareOf(tensor.found, which)
    return found === undefined ? '' : percent(found)
  }
  fillTable(byId('tensors', HTMLTableElement), columns, shown.tensors.map(tensor => {
    const { scales, entropy } = tensor.found ?? {}
    const range = scales && (scales.min === scales.max ? figure(scales.min) : `${figure(scales.min)} to ${figure(scales.max)}`)
    return {
      name: nameOf(tensor),
      cells: [
        tensor.type, tensor.shape.join(' × '), formatBytes(tensor.bytes), share(tensor, 0), share(tensor, 1), share(tensor, 2),
        entropy === undefined ? '' : figure(entropy), range ?? '', scales ? figure(scales.mean) : ''
      ]
    }
  }))
}

/** The name of a tensor, which shows its picture if there is a file to read it from. */
function nameOf(tensor: FileTensor): Node {
  if (!file) return create('code', '', tensor.name)
  const button = create('button', '', tensor.name)
  button.type = 'button'
  button.addEventListener('click', () => {
    pictured = tensor
    firstRow.value = firstColumn.value = '0'
    void showPicture()
  })
  return button
}

async function readAll() {
  if (!file) return
  const [signal, opened] = [begin(), file]
  clear()
  swap(readButton, stopButton)
  progress.hidden = false
  const total = shown.tensors.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  try {
    for (const tensor of shown.tensors) {
      const onProgress = (share: number) => { progress.value = (done + share * tensor.bytes) / total }
      tensor.found ??= await opened.statistics(tensor.name, { signal, onProgress })
      done += tensor.bytes
    }
  } catch (error) {
    if (!signal.aborted) fail('Not all tensors were read', error)
  } finally {
    // Another file may have been opened meanwhile.
    if (file === opened) showAll()
    progress.hidden = true
    // Then the button stops the opening of that file.
    if (reading.signal === signal) swap(stopButton, readButton)
    else readButton.hidden = false
  }
}

function showHeat() {
  const chosen = MEASURES[Number(figureChoice.value)]!
  const { layers, rows, range } = heatMap(shown.tensors, chosen)
  byId('heat', HTMLElement).hidden = !shown.tensors.some(({ layer, found }) => layer !== undefined && found?.scales)
  const table = byId('heat-map', HTMLTableElement)
  fillTable(table, ['Layer', ...layers.map(String)], rows.map(({ role, values }) => ({
    name: role, cells: values.map(value => value === undefined ? '' : figure(value))
  })))
  rows.forEach(({ values }, row) => values.forEach((value, column) => {
    const cell = table.tBodies[0]!.rows[row]!.cells[column + 1]!
    if (value === undefined) return
    const colour = colourOf(within(value, range))
    cell.style.background = `rgb(${colour.join(' ')})`
    cell.style.color = isLight(colour) ? 'black' : 'white'
  }))
  byId('heat-scale', HTMLElement).textContent = rows.length === 0
    ? 'No tensor of a layer has this figure.' : `White is ${figure(range[0])}, the full colour ${figure(range[1])}.`
}

async function showPicture() {
  if (!file || !pictured) return
  const { name, shape, type } = pictured
  const [columns = 0, rows = 1] = shape
  const [row, column] = [Math.min(firstRow.valueAsNumber, rows - 1), Math.min(firstColumn.valueAsNumber, columns - 1)]
  const height = Math.min(SIDE, rows - row, Math.max(1, Math.floor(MAX_VALUES / columns)))
  const width = Math.min(SIDE, columns - column)
  picturing.abort()
  picturing = new AbortController()
  const { signal } = picturing
  const box = byId('picture', HTMLElement)
  box.hidden = false
  box.scrollIntoView({ block: 'nearest' })
  clear()
  pictureText.textContent = 'Reading …'
  try {
    const values = await file.rows(name, row, row + height, { signal })
    const part = partOf(values, columns, column, width)
    draw(canvas, pictureOf(part, width))
    const least = part.reduce((a, b) => Math.min(a, b), Infinity)
    const greatest = part.reduce((a, b) => Math.max(a, b), -Infinity)
    const said = `${name}, ${type}: rows ${row} to ${row + height - 1} of ${rows}, columns ${column} to ${column + width - 1} of ${columns}. ` +
      `A pixel is a weight: blue is below 0, orange above, white is 0. From ${figure(least)} to ${figure(greatest)}.`
    pictureText.textContent = said
    canvas.ariaLabel = said
  } catch (error) {
    if (signal.aborted) return
    pictureText.textContent = ''
    fail('There is no picture', error)
  }
}
