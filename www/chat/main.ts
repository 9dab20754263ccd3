// The chat page: connects its parts. Each part knows its own piece of the page and nothing of the others.
import { BitNet } from 'ternlight'
import { byId, create } from '../shared/dom.ts'
import { describeFailure } from '../shared/failure.ts'
import { createComposer } from './composer.ts'
import { showInfo } from './info.ts'
import { createLoading } from './loading.ts'
import { checkWebGPU, failureBox, showNotice } from './notices.ts'
import { createPicker, type Choice } from './picker.ts'
import { readSampling } from './sampling.ts'
import { Session } from './session.ts'
import { createTranscript } from './transcript.ts'

const session = new Session()
const transcript = createTranscript()
const loading = createLoading()
const modelName = byId('model-name', HTMLElement)
const newChat = byId('new-chat', HTMLButtonElement)

const composer = createComposer({ send, stop: () => session.stop() })
const picker = createPicker(load)

newChat.addEventListener('click', () => {
  session.newChat()
  transcript.clear()
  composer.focus()
})
transcript.onSuggestion(text => composer.write(text))

await start()

async function start() {
  const usable = await checkWebGPU(BitNet.availability())
  const asked = new URLSearchParams(location.search).get('model')
  if (asked) picker.showAddress(asked)
  if (usable) await load(picker.choice())
}

async function load({ source, name }: Choice) {
  showNotice('load', null)
  newChat.disabled = true
  composer.ready(false)
  modelName.textContent = `Loading ${name}`
  showInfo(null)
  transcript.clear()
  try {
    const loaded = await loading.run(options => session.load(source, options))
    if (!loaded) return
    modelName.textContent = session.info.name || name
    showInfo(session.info)
    newChat.disabled = false
    composer.ready(true)
  } catch (error) {
    modelName.textContent = 'No model'
    showNotice('load', loadFailure(name, error))
  }
}

async function send(text: string) {
  const options = readSampling()
  if (!options) return
  const turn = transcript.addTurn(text)
  composer.busy(true)
  try {
    const answer = session.send(text, options)
    for await (const piece of answer.pieces) turn.append(piece)
    turn.finish(await answer.stats, options.seed)
  } catch (error) {
    turn.fail(describeFailure(error, 'Write less, or start a new chat.'))
    composer.giveBack(text)
  } finally {
    composer.busy(false)
  }
}

function loadFailure(name: string, error: unknown): HTMLElement {
  const cancelled = error instanceof DOMException && error.name === 'AbortError'
  if (cancelled) return create('div', 'notice', error.message)
  return failureBox(`Could not load ${name}`, describeFailure(error))
}
