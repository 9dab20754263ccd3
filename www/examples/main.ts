// Live examples: the recipes of the documentation, each with its code and a button that runs it.
import { recipes } from 'virtual:recipes'
import type { BitNet } from 'tritloom'
import { describeFailure, describeProgress } from 'tritloom/words'
import { BUNDLED_MODEL } from '../shared/bundled.ts'
import { copies } from '../shared/copy.ts'
import { byId, create, swap } from '../shared/dom.ts'
import { keepPages } from '../shared/offline.ts'

const state = byId('state', HTMLElement)
let loading: Promise<BitNet> | undefined

byId('examples', HTMLElement).append(...recipes.map(section))
// A page that cannot be kept works as well as before.
await keepPages('../').catch(() => {})

/** The model of all examples. The first call loads it, and so does the first after a failure. */
async function model(): Promise<BitNet> {
  loading ??= import('tritloom').then(({ BitNet }) => BitNet.load(BUNDLED_MODEL, {
    onProgress: progress => { state.textContent = describeProgress(progress) }
  }))
  try {
    return await loading
  } catch (error) {
    loading = undefined
    throw error
  }
}

function section({ title, about, code, load }: typeof recipes[number], n: number): HTMLElement {
  const box = create('section')
  const heading = create('h2', '', title)
  heading.id = `example-${n + 1}`
  box.setAttribute('aria-labelledby', heading.id)
  const source = create('pre')
  source.tabIndex = 0
  source.ariaLabel = `Code: ${title}`
  source.append(create('code', '', code.trimEnd()))
  const [run, stop, copy] = ['Run', 'Stop', 'Copy'].map(name => {
    const button = create('button', name === 'Run' ? 'primary' : '', name)
    button.type = 'button'
    button.ariaLabel = `${name}: ${title}`
    return button
  }) as [HTMLButtonElement, HTMLButtonElement, HTMLButtonElement]
  stop.hidden = true
  const bar = create('div', 'bar')
  const said = create('span', 'visually-hidden')
  said.role = 'status'
  bar.append(run, stop, copy, said)
  const output = create('div', 'output')
  output.role = 'log'
  output.ariaLabel = `Output: ${title}`
  output.hidden = true
  copies(copy, () => code, said)

  let running: AbortController | undefined
  stop.addEventListener('click', () => running?.abort())
  run.addEventListener('click', async () => {
    const { signal } = (running = new AbortController())
    output.replaceChildren()
    output.hidden = false
    swap(run, stop)
    try {
      const recipe = await load()
      await recipe.run({ model: await model(), show: line => output.append(create('p', '', String(line))), signal })
    } catch (error) {
      const { message, code, advice } = describeFailure(error)
      if (!signal.aborted) output.append(create('p', 'failed', `${message} (${code}). ${advice}`.trim()))
    } finally {
      swap(stop, run)
    }
  })
  box.append(heading, paragraph(about), source, bar, output)
  return box
}

/** A paragraph of Markdown. Its marks of code come in pairs. */
function paragraph(markdown: string): HTMLElement {
  const box = create('p')
  box.append(...markdown.split('`').map((text, n) => n % 2 ? create('code', '', text) : text))
  return box
}
