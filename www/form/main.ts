// The page that fills a form from a text: connects its parts.
import { BitNetError } from 'tritloom'
import { describeFailure, type Advice } from 'tritloom/words'
import { BUNDLED_MODEL } from '../shared/bundled.ts'
import { byId, swap } from '../shared/dom.ts'
import { describeStats } from '../shared/figures.ts'
import { HeldModel } from '../shared/model/held.ts'
import { createKnown } from '../shared/model/known.ts'
import { createLoader } from '../shared/model/loader.ts'
import { failureBox, noticeBox, showLoss, showNotice } from '../shared/notices.ts'
import { keepPages } from '../shared/offline.ts'
import { createEditor } from './editor.ts'
import { createRecord } from './record.ts'
import { SAMPLES } from './samples.ts'
import type { Json, Schema } from './schema.ts'

const ADVICE: Advice = {
  'context-full': 'Take a shorter text or a smaller schema, or a model with a longer context.',
  'device-lost': 'Fill the form again: that brings the model back.',
  'incomplete': 'Take a shorter text, and give texts of the schema a maxLength and lists a maxItems.'
}

const form = byId('source', HTMLFormElement)
const sample = byId('sample', HTMLSelectElement)
const text = byId('text', HTMLTextAreaElement)
const textFault = byId('text-fault', HTMLElement)
const fillButton = byId('fill', HTMLButtonElement)
const stopButton = byId('stop', HTMLButtonElement)
const figures = byId('figures', HTMLElement)
const toy = byId('toy', HTMLElement)

const held = new HeldModel(() => showLoss('record'))
let isReady = false
let isFilling = false

const record = createRecord()
const editor = createEditor({
  onSchema: schema => record.setSchema(schema),
  check,
  describe: error => sentence(describeFailure(error, ADVICE).message)
})
const loader = createLoader({
  load: (source, options) => held.load(source, options),
  info: () => held.info,
  onAddress: () => (toy.hidden = true),
  onLoad: () => setReady(false),
  onReady({ source }) {
    toy.hidden = source !== BUNDLED_MODEL
    setReady(true)
    editor.recheck()
  }
})
createKnown((address, name) => void loader.load({ source: address, name }))

sample.append(...SAMPLES.map(({ name }, n) => new Option(name, String(n))))
sample.addEventListener('change', showSample)
form.addEventListener('submit', event => {
  event.preventDefault()
  if (isReady && !isFilling) void fill()
})
form.addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit()
})
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') held.stop()
})
stopButton.addEventListener('click', () => held.stop())
text.addEventListener('input', () => (textFault.textContent = ''))
showSample()

await loader.start()
// A page that cannot be kept works as well, with a network.
keepPages('../').catch(() => {})

function showSample() {
  const { text: words, schema } = SAMPLES[Number(sample.value)]!
  held.stop()
  text.value = words
  textFault.textContent = figures.textContent = ''
  editor.write(schema)
  record.clear()
}

function setReady(now: boolean) {
  isReady = now
  update()
}

function setFilling(now: boolean) {
  isFilling = now
  update()
  if (now) swap(fillButton, stopButton)
  else swap(stopButton, fillButton)
}

function update() {
  fillButton.disabled = !isReady
  sample.disabled = isFilling
  byId('schema', HTMLTextAreaElement).readOnly = isFilling
}

/** Throws what the model has against a schema: an answer of one token is refused as a whole one is. */
async function check(schema: Schema): Promise<boolean> {
  if (!isReady || isFilling) return false
  const responseFormat = { type: 'json_schema', schema } as const
  const { model } = held
  try {
    await model.generate('a', { raw: true, responseFormat, maxTokens: 1 }).stats
    return true
  } catch (error) {
    // Another model is being loaded, and will check it.
    if (!isReady) return false
    throw error
  }
}

async function fill() {
  const schema = editor.read()
  if (schema === undefined) return editor.focus()
  if (text.value.trim() === '') {
    textFault.textContent = 'There is no text. Paste one, or choose a sample.'
    return text.focus()
  }
  setFilling(true)
  editor.say('')
  showNotice('answer', null)
  if (held.isLost) showNotice('loss', noticeBox('Bringing the model back …'))
  figures.textContent = 'Reading the text …'
  record.begin()
  let isBegun = false
  const signal = held.begin()
  try {
    const thinking = held.info.thinking ? { thinking: false } : {}
    const responseFormat = { type: 'json_schema', schema } as const
    const answer = held.model.generate(prompt(text.value, schema), { responseFormat, signal, ...thinking })
    answer.stats.catch(() => {}) // The partial values report the same error.
    for await (const value of held.untilStopped(answer.partials<Json>(), signal)) {
      isBegun = true
      showNotice('loss', null)
      figures.textContent = ''
      record.grow(value)
    }
    const stats = await answer.stats
    figures.textContent = describeStats(signal.aborted ? null : stats, undefined)
    // Rejects if the answer was cut off.
    if (!signal.aborted) await answer.json()
  } catch (error) {
    if (!isBegun) figures.textContent = ''
    // Another model is being loaded.
    if (signal.aborted) return
    const isOfSchema = error instanceof BitNetError && error.code === 'bad-option'
    const failure = describeFailure(error, ADVICE)
    if (isOfSchema) editor.say(sentence(failure.message))
    else showNotice('answer', failureBox(isBegun ? 'The record is not whole' : 'No record', failure))
  } finally {
    record.finish(isBegun)
    setFilling(false)
  }
}

const sentence = (text: string) => text.replace(/\.?$/, '.')

/** The prompt has the schema too. The format alone would only keep the model from saying other things. */
function prompt(text: string, schema: Schema): string {
  return `Read the text and fill in a form: answer with JSON by this JSON schema.\n${JSON.stringify(schema)}\n\nText:\n${text.trim()}`
}
