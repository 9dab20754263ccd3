// A page for Chrome's Prompt API that runs in any browser. After `configure`, all is as Chrome documents it.
import { configure, LanguageModel } from 'tritloom/built-in-ai'
import { BUNDLED_MODEL } from '../shared/bundled.ts'
import { byId } from '../shared/dom.ts'
import { keepPages } from '../shared/offline.ts'

configure({
  url: BUNDLED_MODEL,
  // The bytes are unknown if the server does not say; after a broken download they are what is missing.
  mayDownload: ({ bytes }) => confirm(`May the model be downloaded?${bytes ? ` ${Math.ceil(bytes / 1e6)} MB would come.` : ''}`),
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
  downloading: 'The model is being loaded.',
  available: 'The model is here.'
}

/** Advice for the errors of the interface, by their names. */
const ADVICE: Record<string, string> = {
  NetworkError: 'Check the connection, and ask again.',
  NotAllowedError: 'Ask again, and agree to the download.',
  NotSupportedError: 'Open this page in a newer browser, or on another device.',
  OperationError: 'Ask again: that loads the model anew.',
  QuotaExceededError: 'Ask a shorter question.'
}

form.addEventListener('submit', async event => {
  event.preventDefault()
  askButton.disabled = true
  stopButton.hidden = false
  answer.value = ''
  // Then screen readers read it once, when it is whole.
  answer.ariaBusy = 'true'
  try {
    session ??= await create()
    // The signal of `create` would destroy the session.
    stop = new AbortController()
    for await (const text of session.promptStreaming(question.value, { signal: stop.signal })) answer.value += text
    state.textContent = `${session.contextUsage} of ${session.contextWindow} tokens of this conversation are used.`
  } catch (error) {
    const { name, message } = error as Error
    state.textContent = stop.signal.aborted ? 'Stopped.' : `${name}: ${message}. ${ADVICE[name] ?? ''}`.trim()
    // The thread of its model may have ended: a new session loads it again.
    if (name === 'OperationError') session = undefined
  } finally {
    answer.ariaBusy = 'false'
    stopButton.hidden = true
    askButton.disabled = false
    question.focus()
  }
})
stopButton.addEventListener('click', () => stop.abort())

async function create() {
  stop = new AbortController()
  progress.value = 0
  progress.hidden = false
  state.textContent = says.downloading
  try {
    return await LanguageModel.create({
      signal: stop.signal,
      monitor: target => target.addEventListener('downloadprogress', event => {
        progress.value = (event as ProgressEvent).loaded
      })
    })
  } finally {
    progress.hidden = true
  }
}

state.textContent = says[await LanguageModel.availability()]
// A page that cannot be kept works as well, with a network.
keepPages('../').catch(() => {})
