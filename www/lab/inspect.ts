// Shows what the loaded model computes for a text: its tokens by surprise, the attention of a head, the values in its layers.
import type { Inspection, InspectOptions, ModelInfo } from 'tritloom'
import { describeFailure, formatCount, type Advice, type Failure } from 'tritloom/words'
import { byId, create, swap } from '../shared/dom.ts'
import { movedTo } from '../shared/keys.ts'
import type { HeldModel } from '../shared/model/held.ts'
import { failureBox, showNotice } from '../shared/notices.ts'
import { lines } from './charts.ts'
import { draw, pictureOf } from './picture.ts'
import { onReport, save } from './report.ts'
import { figure, fillTable, percent } from './table.ts'
import { readInspection, reportOf, strongest, surprise, visible } from './tokens.ts'

const ADVICE: Advice = {
  'context-full': 'Take a shorter text, or a model with a longer context.',
  'device-lost': 'Inspect it again: that brings the model back.'
}

const form = byId('inspect-form', HTMLFormElement)
const text = byId('inspect-text', HTMLTextAreaElement)
const start = byId('inspect-start', HTMLButtonElement)
const stop = byId('inspect-stop', HTMLButtonElement)
const saveButton = byId('inspect-save', HTMLButtonElement)
const progress = byId('inspect-progress', HTMLProgressElement)
const facts = byId('inspect-facts', HTMLElement)
const list = byId('token-list', HTMLElement)
const layer = byId('inspect-layer', HTMLInputElement)
const head = byId('inspect-head', HTMLInputElement)
const wantsAttention = byId('inspect-attention', HTMLInputElement)

let held: HeldModel
let isReady = false
let found: Inspection | undefined
let running: AbortController | undefined

/** Connects the tab. It inspects the model that `of` holds. */
export function startInspect(of: HeldModel) {
  held = of
  wantsAttention.addEventListener('change', update)
  update()
  form.addEventListener('submit', event => {
    event.preventDefault()
    void inspect()
  })
  stop.addEventListener('click', () => running?.abort())
  saveButton.addEventListener('click', () => found && save('inspect', reportOf(found)))
  onReport(byId('inspect-report', HTMLInputElement), 'inspect', content => {
    show(readInspection(content))
    clear()
  }, failure => tell('The report cannot be opened', failure))
}

/** Takes the facts of the model that was loaded, or none. */
export function inspectModel(info: ModelInfo | undefined) {
  running?.abort()
  isReady = info !== undefined
  update()
  if (!info) return
  layer.max = String(info.layers - 1)
  head.max = String(info.heads - 1)
}

function update() {
  start.disabled = !isReady
  layer.disabled = head.disabled = !wantsAttention.checked
}

const clear = () => showNotice('inspect', null)
const tell = (title: string, failure: Failure) => showNotice('inspect', failureBox(title, failure))

const isChecked = (id: string) => byId(id, HTMLInputElement).checked

async function inspect() {
  if (!isReady || running) return
  const [mine, what] = [(running = new AbortController()), [] as NonNullable<InspectOptions['what']>[number][]]
  if (isChecked('inspect-candidates')) what.push('candidates')
  if (isChecked('inspect-activations')) what.push('activations')
  if (wantsAttention.checked) what.push('attention')
  clear()
  swap(start, stop)
  progress.hidden = false
  progress.value = 0
  try {
    const input = isChecked('inspect-chat') ? [{ role: 'user' as const, content: text.value }] : text.value
    show(await held.use(model => model.inspect(input, {
      what, top: 10, at: ['attention-out', 'block'],
      ...(wantsAttention.checked && { layer: layer.valueAsNumber, head: head.valueAsNumber }),
      signal: mine.signal, onProgress: share => { progress.value = share }
    })))
    showNotice('loss', null)
  } catch (error) {
    if (!mine.signal.aborted) tell('The text was not inspected', describeFailure(error, ADVICE))
  } finally {
    running = undefined
    swap(stop, start)
    progress.hidden = true
  }
}

function show(inspection: Inspection) {
  found = inspection
  saveButton.disabled = false
  const { tokens } = inspection
  const scored = tokens.filter(({ logprob }) => logprob !== undefined)
  const bits = scored.reduce((sum, token) => sum + surprise(token), 0)
  facts.textContent = [
    `${formatCount(tokens.length)} tokens`,
    scored.length > 0 ? `${figure(bits / scored.length)} bits of surprise a token` : ''
  ].filter(fact => fact).join(' · ')
  showTokens(inspection)
  showAttention(inspection)
  showActivations(inspection)
}

function showTokens(inspection: Inspection) {
  const { tokens, attention } = inspection
  byId('tokens', HTMLElement).hidden = false
  const has = tokens.some(({ next }) => next)
  byId('tokens-help', HTMLElement).textContent = [
    'Each box is a token. Point at one, or go to one with Tab and the arrow keys.',
    has ? 'The stronger its colour, the less likely it was after the tokens before it.' : ''
  ].join(' ')
  let chosen: HTMLButtonElement
  const buttons = tokens.map((token, n) => {
    const button = create('button', token.special ? 'special' : '', visible(token.text))
    button.type = 'button'
    button.tabIndex = -1
    button.ariaPressed = 'false'
    // A token of 10 bits or more has the full colour.
    if (token.logprob !== undefined) button.style.setProperty('--surprise', Math.min(1, surprise(token) / 10).toFixed(3))
    const choose = () => {
      // Of thousands, only the one before changes.
      chosen.ariaPressed = 'false'
      chosen.tabIndex = -1
      chosen = button
      chosen.ariaPressed = 'true'
      chosen.tabIndex = 0
      showToken(inspection, n)
    }
    button.addEventListener('pointerenter', choose)
    button.addEventListener('focus', choose)
    return button
  })
  list.replaceChildren(...buttons)
  chosen = buttons[0] ?? create('button')
  chosen.tabIndex = 0
  list.onkeydown = event => movedTo(event, buttons)?.focus()
  byId('token', HTMLElement).replaceChildren(create('p', 'figures', attention || has ? 'No token is chosen.' : ''))
}

/** Shows what is known of token number `n`. */
function showToken({ tokens, attention }: Inspection, n: number) {
  const token = tokens[n]!
  const said = [
    `Token ${n}: ${JSON.stringify(token.text)}`, `id ${token.id}`, token.special ? 'special' : '',
    token.logprob === undefined ? '' : `probability ${percent(Math.exp(token.logprob))}, bits of surprise: ${figure(surprise(token))}`
  ].filter(fact => fact).join(' · ')
  const parts: Node[] = [create('p', 'figures', said)]
  if (token.next) {
    const table = create('table')
    fillTable(table, ['The likeliest after it', 'Id', 'Probability'], token.next.map(({ id, text, logprob }) =>
      ({ name: create('code', '', visible(text)), cells: [String(id), percent(Math.exp(logprob))] })))
    parts.push(table)
  }
  if (attention) {
    const table = create('table')
    fillTable(table, ['It attends to', 'Token', 'Weight'], strongest(attention, tokens.length, n).map(({ at, weight }) =>
      ({ name: create('code', '', visible(tokens[at]!.text)), cells: [String(at), percent(weight)] })))
    parts.push(table)
  }
  byId('token', HTMLElement).replaceChildren(...parts)
}

function showAttention({ attention, tokens }: Inspection) {
  byId('attention', HTMLElement).hidden = !attention
  if (!attention) return
  const said = `Layer ${attention.layer}, head ${attention.head}. A row for each token, from the top: how much it attends to each ` +
    'token before it, from the left. Choose a token above for its greatest weights.'
  byId('attention-text', HTMLElement).textContent = said
  const canvas = byId('attention-canvas', HTMLCanvasElement)
  canvas.ariaLabel = `The attention of layer ${attention.layer}, head ${attention.head}, of ${tokens.length} tokens`
  draw(canvas, pictureOf(attention.weights, tokens.length))
}

function showActivations({ activations }: Inspection) {
  byId('activations', HTMLElement).hidden = !activations
  if (!activations) return
  fillTable(byId('activations-table', HTMLTableElement), ['Layer', 'Point', 'Least', 'Greatest', 'Root mean square', 'Not finite'],
    activations.map(({ layer, at, min, max, rms, notFinite }) =>
      ({ name: String(layer), cells: [at, figure(min), figure(max), figure(rms), String(notFinite)] })))
  const stream = activations.filter(({ at }) => at === 'block')
  lines(byId('activations-chart', HTMLElement), {
    x: { title: 'Layer', values: stream.map(({ layer }) => layer) },
    series: [
      { title: 'Greatest', values: stream.map(({ max }) => max) },
      { title: 'Root mean square', values: stream.map(({ rms }) => rms) },
      { title: 'Least', values: stream.map(({ min }) => min) }
    ]
  })
}
