// The landing page: a model that answers after one click, lines to copy, and pages that stay without a network.
import type { BitNet, Generation } from 'tritloom'
import { describeFailure, describeProgress, formatBytes, formatRate, formatSeconds } from 'tritloom/words'
import { orAborted } from '../shared/abort.ts'
import { copies } from '../shared/copy.ts'
import { byId, swap } from '../shared/dom.ts'
import { keepPages } from '../shared/offline.ts'

const MODEL = new URL('models/tiny-stories.gguf', document.baseURI).href
const TOKENS = 160

const form = byId('ask', HTMLFormElement)
const prompt = byId('prompt', HTMLInputElement)
const run = byId('run', HTMLButtonElement)
const stop = byId('stop', HTMLButtonElement)
const progress = byId('progress', HTMLProgressElement)
const step = byId('step', HTMLElement)
const answer = byId('answer', HTMLElement)
const speed = byId('speed', HTMLElement)
const failure = byId('failure', HTMLElement)

let loading: Promise<BitNet> | undefined
let running: AbortController | undefined

form.addEventListener('submit', event => {
  event.preventDefault()
  if (!running) void ask(prompt.value)
})
stop.addEventListener('click', () => running?.abort())
copies(byId('copy', HTMLButtonElement), () => byId('lines', HTMLElement).textContent, byId('copied', HTMLElement))

// A page that cannot be kept works as well as before.
await keepPages('./').catch(() => {})

async function ask(text: string) {
  const { signal } = running = new AbortController()
  show(true)
  try {
    const model = await here(signal)
    step.textContent = 'Reading …'
    await write(model.generate(text, { maxTokens: TOKENS, signal }), model)
  } catch (error) {
    if (!signal.aborted) tell(error)
    const { code } = describeFailure(error)
    // The worker has ended and answers no more; or the GPU was lost, and the stored file is gone.
    if (code === 'internal' || code === 'not-cached') forget()
  } finally {
    running = undefined
    show(false)
    step.textContent = signal.aborted ? 'Stopped.' : ''
  }
}

/** Empties the page for an answer, or shows that it has ended. */
function show(isRunning: boolean) {
  if (isRunning) {
    answer.textContent = speed.textContent = ''
    failure.hidden = true
  }
  if (isRunning) swap(run, stop)
  else swap(stop, run)
  answer.ariaBusy = String(isRunning)
  progress.hidden = true
}

/** Gives the model up, so that the next click loads it anew. */
function forget() {
  const gone = loading
  loading = undefined
  void gone?.then(model => model.dispose()).catch(() => {})
}

/** The model. The first call loads it, and so does the first after a failure. */
async function here(signal: AbortSignal): Promise<BitNet> {
  loading ??= load(signal)
  try {
    return await loading
  } catch (error) {
    loading = undefined
    throw error
  } finally {
    progress.hidden = true
  }
}

async function load(signal: AbortSignal): Promise<BitNet> {
  step.textContent = 'Fetching the program …'
  const { BitNet } = await orAborted(import('tritloom'), signal)
  return BitNet.load(MODEL, {
    signal,
    onProgress: now => {
      if (now.phase === 'storing' || now.phase === 'stored' || !running) return
      progress.hidden = false
      progress.value = now.fraction
      step.textContent = describeProgress(now)
    }
  })
}

async function write(generation: Generation, { info }: BitNet) {
  generation.stats.catch(() => {}) // The loop throws the same error, so it is not lost.
  for await (const text of generation) {
    step.textContent = ''
    // The end stays in sight, unless the reader has scrolled up.
    const isAtEnd = answer.scrollHeight - answer.scrollTop - answer.clientHeight < 5
    answer.append(text)
    if (isAtEnd) answer.scrollTop = answer.scrollHeight
  }
  const { decodeTokensPerSecond, timeToFirstToken } = await generation.stats
  const where = info.backend === 'cpu' ? 'your processor' : info.adapter ? `your GPU (${info.adapter})` : 'your GPU'
  speed.textContent = `${formatRate(decodeTokensPerSecond)} on ${where}, the first after ` +
    `${formatSeconds(timeToFirstToken)}. The model has ${formatBytes(info.bytes)}.`
}

function tell(error: unknown) {
  const { message, code, advice } = describeFailure(error)
  failure.textContent = [message, `(${code})`, advice].filter(Boolean).join(' ')
  failure.hidden = false
}
