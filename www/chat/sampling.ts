// The sampling panel: reads the options of an answer.
import type { GenerateOptions } from 'ternlight'
import { byId } from '../shared/dom.ts'

const form = byId('sampling', HTMLFormElement)
const greedy = byId('greedy', HTMLInputElement)
const number = (id: string) => byId(id, HTMLInputElement)
const chance = ['temperature', 'top-k', 'top-p', 'seed'].map(number)

function update() {
  for (const input of chance) input.disabled = greedy.checked
}

form.addEventListener('change', update)
form.addEventListener('submit', event => event.preventDefault())
byId('sampling-defaults', HTMLButtonElement).addEventListener('click', () => {
  form.reset()
  update()
})
update()

/** The options as set, always with a seed where chance plays a part; null, after pointing at the field, if one is out of range. */
export function readSampling(): GenerateOptions | null {
  if (!form.reportValidity()) return null
  const options: GenerateOptions = {}
  const maxTokens = number('max-tokens')
  if (maxTokens.value) options.maxTokens = maxTokens.valueAsNumber
  if (greedy.checked) return { ...options, temperature: 0 }
  const [temperature, topK, topP, seed] = chance.map(input => input.valueAsNumber) as [number, number, number, number]
  if (topK > 0) options.topK = topK
  if (topP < 1) options.topP = topP
  return { ...options, temperature, seed: Number.isNaN(seed) ? randomSeed() : seed }
}

/** Drawn here rather than by the engine, so that the page can show it and the answer can be had again. */
function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!
}
