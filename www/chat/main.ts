// The chat page: connects its parts. Each part knows its own area of the page and no other part.
import { BitNet, BitNetError, type ProgressNote } from 'tritloom'
import { byId, create } from '../shared/dom.ts'
import { describeFailure, describeNote, formatBytes, isLasting, type Advice } from 'tritloom/words'
import { createComposer } from './composer.ts'
import { showInfo } from './info.ts'
import { createKnown } from './known.ts'
import { createLoading } from './loading.ts'
import { checkWebGPU, failureBox, noticeBox, showNotice } from './notices.ts'
import { createPicker, type Choice } from './picker.ts'
import { offerThinking, readSampling } from './sampling.ts'
import { Session } from './session.ts'
import { createTranscript } from './transcript.ts'

const ADVICE: Advice = {
  'context-full': 'Write less, or start a new chat.',
  'device-lost': 'Send it again: that brings the model back.'
}

/** Milliseconds to wait for the size of a model. */
const PATIENCE = 10_000

/** How many loads have begun. */
let loads = 0

const session = new Session(showLoss)
const transcript = createTranscript()
const loading = createLoading()
const modelName = byId('model-name', HTMLElement)
const newChat = byId('new-chat', HTMLButtonElement)

const composer = createComposer({ send, stop: () => session.stop() })
const picker = createPicker(load)

createKnown((address, name) => {
  picker.showAddress(address)
  void load({ source: address, name })
})

newChat.addEventListener('click', () => {
  session.newChat()
  transcript.clear()
  composer.focus()
})
transcript.onSuggestion(text => composer.write(text))

await start()

async function start() {
  const usable = await checkWebGPU(BitNet.availability())
  const address = new URLSearchParams(location.search).get('model')?.trim()
  if (address) picker.showAddress(address)
  if (!usable) return
  if (!address) return load(picker.choice())
  modelName.textContent = 'Asking for the size of the model'
  const bytes = await missing(address)
  // The reader did not wait for the answer.
  if (loads > 0) return
  if (bytes === 0) await load({ source: address, name: address })
  else ask(address, bytes)
}

/**
 * Bytes that a load of an address would download; `undefined` if that cannot be found out. If the
 * address is wrong, the load reports it.
 */
async function missing(address: string): Promise<number | undefined> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), PATIENCE)
  try {
    return await BitNet.cache.missing(address, { signal: late.signal })
  } catch (error) {
    return error instanceof BitNetError && error.code === 'bad-option' ? 0 : undefined
  } finally {
    clearTimeout(timer)
  }
}

/** Asks before a download, because a link to this page may name any model of any site. */
function ask(address: string, bytes: number | undefined) {
  const size = bytes === undefined ? 'How large it is, is not known.' : `It has ${formatBytes(bytes)}.`
  const { host } = new URL(address, location.href)
  const box = noticeBox(`This link loads a model from ${host}. ${size} `)
  const button = create('button', '', 'Download')
  button.type = 'button'
  button.addEventListener('click', () => void load({ source: address, name: address }))
  box.append(button)
  modelName.textContent = 'No model'
  showNotice('load', box)
}

async function load({ source, name }: Choice) {
  loads += 1
  for (const notice of ['load', 'loss']) showNotice(notice, null)
  newChat.disabled = true
  composer.ready(false)
  modelName.textContent = `Loading ${name}`
  showInfo(null)
  transcript.clear()
  try {
    const notes = await loading.run(options => session.load(source, options))
    if (!notes) return
    showNotice('load', lastingNotes(notes))
    modelName.textContent = session.info.name || name
    showInfo(session.info)
    offerThinking(session.info.thinking)
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
  if (session.isLost) showNotice('loss', noticeBox('Bringing the model back …'))
  try {
    const answer = session.send(text, options)
    for await (const token of answer.tokens) {
      showNotice('loss', null)
      turn.append(token)
    }
    turn.finish(await answer.stats, options.seed)
  } catch (error) {
    turn.fail(describeFailure(error, ADVICE))
    composer.giveBack(text)
  } finally {
    composer.busy(false)
  }
}

/** Shows that the GPU is gone, until the next answer shows that the model is back. */
function showLoss() {
  const what = 'The GPU was lost: its driver was reset, or the browser took it away.'
  const next = 'Your next message brings the model back, which takes as long as loading it did.'
  showNotice('loss', noticeBox(`${what} ${next}`))
}

function lastingNotes(notes: ProgressNote[]): HTMLElement | null {
  const sentences = notes.filter(isLasting).map(describeNote)
  return sentences.length > 0 ? noticeBox(sentences.join(' ')) : null
}

function loadFailure(name: string, error: unknown): HTMLElement {
  const isCancelled = error instanceof DOMException && error.name === 'AbortError'
  if (isCancelled) return noticeBox(error.message)
  return failureBox(`Could not load ${name}`, describeFailure(error))
}
