// The page that searches by meaning: connects its parts.
import type { IndexProgress } from 'tritloom/search'
import { describeFailure, formatCount, formatSeconds, type Advice } from 'tritloom/words'
import { byId, create } from '../shared/dom.ts'
import { HeldModel } from '../shared/model/held.ts'
import { createLoader } from '../shared/model/loader.ts'
import { failureBox, noticeBox, showLoss, showNotice } from '../shared/notices.ts'
import { sayKept } from '../shared/offline.ts'
import { Library, type Origin } from './library.ts'

const ADVICE: Advice = {
  'context-full': 'Ask a shorter question, or take a model with a longer context.',
  'device-lost': 'Try again: that brings the model back.',
  'index-damaged': 'Forget everything, and read the texts again.',
  'index-mismatch': 'Forget everything, and read the texts again.',
  'storage': 'Let the browser keep data of this site. In a private window it may not.'
}

const readButton = byId('read-documents', HTMLButtonElement)
const files = byId('files', HTMLInputElement)
const forgetButton = byId('forget', HTMLButtonElement)
const reading = byId('reading', HTMLElement)
const readText = byId('read-text', HTMLElement)
const readBar = byId('read-progress', HTMLProgressElement)
const sources = byId('sources', HTMLElement)
const form = byId('search', HTMLFormElement)
const query = byId('query', HTMLInputElement)
const scope = byId('scope', HTMLSelectElement)
const findButton = byId('find', HTMLButtonElement)
const figures = byId('figures', HTMLElement)
const results = byId('results', HTMLElement)
const toy = byId('toy', HTMLElement)

const held = new HeldModel(() => showLoss('search'))
let library: Library | undefined
let isReady = false
let isReading = false
/** How many searches have begun. */
let searches = 0

const loader = createLoader({
  async load(source, options) {
    await library?.close()
    library = undefined
    await held.load(source, options)
  },
  info: () => held.info,
  onAddress: () => (toy.hidden = true),
  onLoad() {
    isReady = false
    update()
  },
  onReady() {
    isReady = true
    toy.hidden = held.info.embeds
    void openLibrary()
  }
})

readButton.addEventListener('click', () => void read((library, signal, onProgress) =>
  library.readDocumentation(signal, onProgress)))
files.addEventListener('change', () => {
  const chosen = [...(files.files ?? [])]
  files.value = '' // So that the same file can be chosen again.
  void read(async (library, signal, onProgress) => {
    const unread = await library.readFiles(chosen, signal, onProgress)
    if (unread.length > 0) showNotice('read', noticeBox(`Not read, as they are no texts: ${unread.join(', ')}.`))
  })
})
byId('stop', HTMLButtonElement).addEventListener('click', () => held.stop())
forgetButton.addEventListener('click', () => void forgetAll())
form.addEventListener('submit', event => {
  event.preventDefault()
  if (library && query.value.trim() !== '') void search(library)
})

void sayKept('../', byId('offline-state', HTMLElement))
await loader.start()

async function openLibrary() {
  const { model } = held
  try {
    const opened = await Library.open(model)
    // Another model has been loaded meanwhile.
    if (!isReady || model !== held.model) return void opened.close()
    library = opened
    showNotice('library', null)
  } catch (error) {
    showNotice('library', failureBox('The index cannot be used', describeFailure(error, ADVICE)))
  }
  update()
}

async function forgetAll() {
  try {
    if (library) await library.forgetAll()
    else {
      await Library.delete(held.model)
      await openLibrary()
    }
    results.replaceChildren()
    figures.textContent = ''
  } catch (error) {
    showNotice('read', failureBox('The texts could not be forgotten', describeFailure(error, ADVICE)))
  }
  update()
}

/** A way to read texts into the library. */
type Job = (library: Library, signal: AbortSignal, onProgress: (progress: IndexProgress, total: number) => void) => Promise<void>

/** Runs `job` and shows its progress, until it has ended or is stopped. The texts that were read stay. */
async function read(job: Job) {
  if (!library || isReading) return
  showNotice('read', null)
  isReading = true
  readText.textContent = 'Reading'
  readBar.removeAttribute('value')
  update()
  const [signal, opened] = [held.begin(), library]
  const onProgress = ({ done, passages }: IndexProgress, total: number) => {
    readText.textContent = `Reading: ${formatCount(done)} of ${formatCount(total)}, ${formatCount(passages)} new passages`
    readBar.value = done / total
    showSources()
  }
  try {
    await held.use(() => job(opened, signal, onProgress))
    showNotice('loss', null)
  } catch (error) {
    if (!signal.aborted) showNotice('read', failureBox('Not all was read', describeFailure(error, ADVICE)))
  } finally {
    isReading = false
    update()
  }
}

async function search(library: Library) {
  const mine = ++searches
  showNotice('search', null)
  figures.textContent = 'Searching …'
  const start = performance.now()
  try {
    const found = await held.use(() => library.search(query.value, scope.value as Origin['kind'] | ''))
    if (mine !== searches) return
    const time = formatSeconds(performance.now() - start)
    figures.textContent = found.length === 0
      ? 'Nothing was found: no text here has been read.'
      : `The best of ${formatCount(library.passages)} passages, in ${time}`
    results.replaceChildren(...found.map(({ metadata, text, score }) => {
      const item = create('li')
      item.append(create('span', 'figures', score.toFixed(3)), create('h3', '', metadata.title), create('p', '', text))
      return item
    }))
    showNotice('loss', null)
  } catch (error) {
    if (mine !== searches) return
    figures.textContent = ''
    showNotice('search', failureBox('No results', describeFailure(error, ADVICE)))
  }
}

function update() {
  reading.hidden = !isReading
  readButton.disabled = files.disabled = !library || isReading
  // A damaged index can be forgotten too.
  forgetButton.disabled = !isReady || isReading
  findButton.disabled = !library
  showSources()
}

function showSources() {
  const { files: names, sections } = library?.contents ?? { files: [], sections: 0 }
  const documents = create('li', '', sections > 0
    ? `The documentation: ${formatCount(sections)} sections` : 'The documentation has not been read yet.')
  sources.replaceChildren(documents, ...names.map(name => {
    const item = create('li', '', name)
    const button = create('button', '', 'Forget')
    button.append(create('span', 'visually-hidden', ` ${name}`))
    button.type = 'button'
    button.disabled = isReading
    button.addEventListener('click', () => void forget(name))
    item.append(button)
    return item
  }))
}

async function forget(name: string) {
  try {
    await library?.forget(name)
  } catch (error) {
    showNotice('read', failureBox(`Could not forget ${name}`, describeFailure(error, ADVICE)))
  }
  update()
}
