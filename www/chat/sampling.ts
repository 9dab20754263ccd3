// The settings: reads the options of an answer, and keeps them for the next visit.
import type { GenerateOptions } from 'tritloom'
import { byId } from '../shared/dom.ts'
import type { Settings } from './conversation.ts'
import { createFormat } from './format.ts'
import { keep, readKept } from './kept.ts'
import { PRESETS, presetOf, type Sampling } from './presets.ts'

const form = byId('sampling', HTMLFormElement)
const preset = byId('preset', HTMLSelectElement)
const system = byId('system', HTMLTextAreaElement)
const greedy = byId('greedy', HTMLInputElement)
const numbers = {
  temperature: byId('temperature', HTMLInputElement),
  topK: byId('top-k', HTMLInputElement),
  topP: byId('top-p', HTMLInputElement),
  minP: byId('min-p', HTMLInputElement),
  repeatPenalty: byId('repeat-penalty', HTMLInputElement)
}
const seed = byId('seed', HTMLInputElement)
const maxTokens = byId('max-tokens', HTMLInputElement)
const maxThinking = byId('max-thinking', HTMLInputElement)
const thinking = byId('thinking', HTMLInputElement)
const thinkingChoice = byId('thinking-choice', HTMLElement)

const format = createFormat()

/** Shows the switch of reasoning if the model has one. */
export function offerThinking(offered: boolean) {
  thinkingChoice.hidden = !offered
}

const NAMES = Object.keys(numbers) as (keyof typeof numbers)[]

const current = (): Sampling => ({
  greedy: greedy.checked,
  ...(Object.fromEntries(NAMES.map(name => [name, numbers[name].valueAsNumber])) as Record<keyof typeof numbers, number>)
})

const OWN = 'Own'

/** Names the preset, and disables the fields that mean nothing while answers are greedy. */
function update() {
  for (const input of [numbers.temperature, numbers.topK, numbers.topP, numbers.minP, seed]) input.disabled = greedy.checked
  preset.value = presetOf(current()) ?? OWN
  format.update()
}

/** The fields whose values are kept for the next visit. */
const fields = () =>
  [...form.elements].filter(
    field => field instanceof HTMLInputElement || field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement
  )

const valueOf = (field: ReturnType<typeof fields>[number]): string | boolean =>
  field instanceof HTMLInputElement && field.type === 'checkbox' ? field.checked : field.value

function store() {
  keep('settings', Object.fromEntries(fields().map(field => [field.id, valueOf(field)])))
}

function restore() {
  const kept = readKept<Record<string, string | boolean>>('settings') ?? {}
  for (const field of fields()) {
    const value = kept[field.id]
    if (typeof value === 'boolean' && field instanceof HTMLInputElement) field.checked = value
    else if (typeof value === 'string') field.value = value
  }
}

preset.append(...[...Object.keys(PRESETS), OWN].map(name => new Option(name)))
// Before the form hears of it, and names the preset by the values.
preset.addEventListener('input', () => {
  const chosen = PRESETS[preset.value]
  if (!chosen) return
  greedy.checked = chosen.greedy
  for (const name of NAMES) numbers[name].value = String(chosen[name])
})
for (const kind of ['input', 'change']) {
  form.addEventListener(kind, () => {
    update()
    store()
  })
}
form.addEventListener('submit', event => event.preventDefault())
byId('sampling-defaults', HTMLButtonElement).addEventListener('click', () => {
  form.reset()
  update()
  store()
})
restore()
update()

/**
 * The settings as they are. If one cannot be used, points at its field and gives null. A drawn answer always has a
 * seed, so that the page can show it, and go on with the same one.
 */
export function readSettings(): Settings | null {
  const invalid = [...form.elements].find(field => field instanceof HTMLInputElement && !field.checkValidity())
  if (invalid) {
    // A field in a folded part cannot be pointed at.
    for (let part = invalid.closest('details'); part; part = part.parentElement?.closest('details') ?? null) part.open = true
    form.reportValidity()
    return null
  }
  const formatted = format.read()
  if (!formatted) return null
  const { topK, topP, minP, temperature, repeatPenalty } = current()
  const options: GenerateOptions = { ...formatted }
  if (maxTokens.value) options.maxTokens = maxTokens.valueAsNumber
  if (maxThinking.value) options.maxThinkingTokens = maxThinking.valueAsNumber
  if (!thinkingChoice.hidden) options.thinking = thinking.checked
  if (repeatPenalty !== 1) options.repeatPenalty = repeatPenalty
  if (greedy.checked) return { options: { ...options, temperature: 0 }, system: system.value.trim() }
  if (topK > 0) options.topK = topK
  if (topP < 1) options.topP = topP
  if (minP > 0) options.minP = minP
  options.temperature = temperature
  options.seed = seed.value ? seed.valueAsNumber : randomSeed()
  return { options, system: system.value.trim() }
}

/** The page draws the seed, because the engine does not report the seed that it draws. */
function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!
}
