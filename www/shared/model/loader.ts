// Loads the model of a page: the one of the link or the bundled one, and later those that the
// reader chooses.
import { BitNet, BitNetError, type LoadOptions, type ModelInfo, type ProgressNote } from 'tritloom'
import { describeFailure, describeNote, formatBytes, isLasting, type Advice } from 'tritloom/words'
import { BUNDLED_MODEL } from '../bundled.ts'
import { byId, create } from '../dom.ts'
import { checkAvailable, closableBox, failureBox, noticeBox, showNotice } from '../notices.ts'
import { createLoading, PAUSED } from './loading.ts'

/** A model that the reader wants. */
export interface Choice {
  source: string | File
  name: string
}

/** The model that comes with the page. */
export const BUNDLED: Choice = { source: BUNDLED_MODEL, name: 'Tiny stories' }

/** The rest of a page, as far as loading concerns it. */
export interface Rest {
  /** Loads a model in place of the one before. */
  load(source: string | File, options: LoadOptions): Promise<void>
  /** A load begins: there is no model now. */
  onLoad(): void
  /** A model can be used. */
  onReady(choice: Choice): void
  /** A load has failed, or was cancelled or paused. */
  onFailure?(): void
  /** The facts of the model that can be used. */
  info(): ModelInfo
  /** The link of the page names a model. */
  onAddress?(address: string): void
}

/** Advice for readers of these pages, where the package has none. */
const ADVICE: Advice = {
  'http': 'Check the address, or choose one of the known models.',
  'unsupported-model': 'Choose one of the known models.',
  'missing-tensor': 'Choose another file, or one of the known models.',
  'tensor-shape': 'Choose another file, or one of the known models.',
  'not-cached': 'Load it once with a network.',
  'integrity': 'Load it again: what was damaged is downloaded anew.'
}

/** Milliseconds to wait for the size of a model. */
const PATIENCE = 10_000

/** Shows loads: the name of the model in the header, the progress, and errors among the notices. */
export function createLoader(rest: Rest) {
  const loading = createLoading()
  const modelName = byId('model-name', HTMLElement)
  /** How many loads have begun. */
  let loads = 0

  /** Loads the model that the link names, once the reader agrees, or else the one of `choice`. */
  async function start(choice = () => BUNDLED) {
    const address = new URLSearchParams(location.search).get('model')?.trim()
    if (address) rest.onAddress?.(address)
    if (!(await checkAvailable(BitNet.availability()))) return
    if (!address) return load(choice())
    modelName.textContent = 'Asking for the size of the model'
    const bytes = await missing(address)
    // The reader did not wait for the answer.
    if (loads > 0) return
    if (bytes === 0) await load({ source: address, name: address })
    else ask(address, bytes)
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

  async function load(choice: Choice) {
    const { source, name } = choice
    loads += 1
    for (const notice of ['load', 'loss']) showNotice(notice, null)
    modelName.textContent = `Loading ${name}`
    rest.onLoad()
    try {
      const notes = await loading.run(options => rest.load(source, options))
      if (!notes) return
      showNotice('load', lastingNotes(notes))
      modelName.textContent = rest.info().name || name
      rest.onReady(choice)
    } catch (error) {
      modelName.textContent = 'No model'
      showNotice('load', error === PAUSED ? pausedBox(choice) : loadFailure(name, error))
      rest.onFailure?.()
    }
  }

  function pausedBox(choice: Choice): HTMLElement {
    const [box, button] = [noticeBox(`${PAUSED.message} `), create('button', '', 'Resume')]
    button.type = 'button'
    button.addEventListener('click', () => void load(choice))
    box.append(button)
    return box
  }

  return { start, load }
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

function lastingNotes(notes: ProgressNote[]): HTMLElement | null {
  const sentences = notes.filter(isLasting).map(describeNote)
  return sentences.length > 0 ? closableBox(sentences.join(' ')) : null
}

function loadFailure(name: string, error: unknown): HTMLElement {
  const isCancelled = error instanceof DOMException && error.name === 'AbortError'
  if (isCancelled) return noticeBox(error.message)
  return failureBox(`Could not load ${name}`, describeFailure(error, ADVICE))
}
