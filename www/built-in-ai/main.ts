// A page for Chrome's Prompt API that runs in any browser. After `configure`, all is as Chrome documents it.
import { configure, LanguageModel } from 'tritloom/built-in-ai'
import { BUNDLED_MODEL } from '../shared/bundled.ts'
import { byId } from '../shared/dom.ts'

configure({
  url: BUNDLED_MODEL,
  mayDownload: ({ bytes = 0 }) => confirm(`May the model be downloaded? It has ${Math.round(bytes / 1e6)} MB.`),
  answers: { maxTokens: 300 }
})

const form = byId('form', HTMLFormElement)
const question = byId('question', HTMLInputElement)
const askButton = byId('ask', HTMLButtonElement)
const stopButton = byId('stop', HTMLButtonElement)
const progress = byId('progress', HTMLProgressElement)
const answer = byId('answer', HTMLOutputElement)
const state = byId('state', HTMLElement)

let session: LanguageModel | undefined
let stop = new AbortController()

const says = {
  unavailable: 'No model can run in this browser.',
  downloadable: 'The first question downloads the model.',
  downloading: 'The model is being downloaded.',
  available: 'The model is here.'
}

form.addEventListener('submit', async event => {
  event.preventDefault()
  askButton.disabled = true
  answer.value = ''
  stop = new AbortController()
  const { signal } = stop
  try {
    session ??= await create()
    stopButton.hidden = false
    for await (const text of session.promptStreaming(question.value, { signal })) answer.value += text
    state.textContent = `${session.contextUsage} of ${session.contextWindow} tokens of this conversation are used.`
  } catch (error) {
    state.textContent = signal.aborted ? 'Stopped.' : `${(error as Error).name}: ${(error as Error).message}`
  } finally {
    stopButton.hidden = true
    askButton.disabled = false
    question.focus()
  }
})
stopButton.addEventListener('click', () => stop.abort())

async function create() {
  progress.hidden = false
  try {
    return await LanguageModel.create({
      monitor: target => target.addEventListener('downloadprogress', event => {
        progress.value = (event as ProgressEvent).loaded
      })
    })
  } finally {
    progress.hidden = true
  }
}

state.textContent = says[await LanguageModel.availability()]
