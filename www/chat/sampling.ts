// The sampling panel: reads the options of an answer.
import type { GenerateOptions } from 'tritloom'
import { byId } from '../shared/dom.ts'

const form = byId('sampling', HTMLFormElement)
const greedy = byId('greedy', HTMLInputElement)
const temperature = byId('temperature', HTMLInputElement)
const topK = byId('top-k', HTMLInputElement)
const topP = byId('top-p', HTMLInputElement)
const seed = byId('seed', HTMLInputElement)
const maxTokens = byId('max-tokens', HTMLInputElement)
const thinking = byId('thinking', HTMLInputElement)
const thinkingChoice = byId('thinking-choice', HTMLElement)

/** Shows the switch of reasoning if the model has one. */
export function offerThinking(offered: boolean) {
  thinkingChoice.hidden = !offered
}

/** Disables these while answers are greedy, because a greedy answer draws nothing. */
function update() {
  for (const input of [temperature, topK, topP, seed]) input.disabled = greedy.checked
}

form.addEventListener('change', update)
form.addEventListener('submit', event => event.preventDefault())
byId('sampling-defaults', HTMLButtonElement).addEventListener('click', () => {
  form.reset()
  update()
})
update()

/**
 * The options as they are set. If one is out of range, points at its field and gives null. A drawn
 * answer always has a seed, so that the page can show it.
 */
export function readSampling(): GenerateOptions | null {
  if (!form.reportValidity()) return null
  const options: GenerateOptions = {}
  if (maxTokens.value) options.maxTokens = maxTokens.valueAsNumber
  if (!thinkingChoice.hidden) options.thinking = thinking.checked
  if (greedy.checked) return { ...options, temperature: 0 }
  if (topK.valueAsNumber > 0) options.topK = topK.valueAsNumber
  if (topP.valueAsNumber < 1) options.topP = topP.valueAsNumber
  options.temperature = temperature.valueAsNumber
  options.seed = seed.value ? seed.valueAsNumber : randomSeed()
  return options
}

/** The page draws the seed, because the engine does not report the seed that it draws. */
function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!
}
