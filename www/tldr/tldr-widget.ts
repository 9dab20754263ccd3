// <tldr-widget for="#article" model="model.gguf">: one click sums up a text of the page, or one that the reader pastes.
// The model is loaded at the first click; with the attribute `preload`, as soon as the page has nothing else to do.
//
// Events, all bubbling: `tldr-start`, `tldr-progress` (detail: the package's Progress), `tldr-text` (detail: a piece),
// `tldr-done` (detail: { summary, stats }), `tldr-error` (detail: { code, message }).
import { BitNet, type Progress } from 'ternlight'
import { describeFailure } from '../shared/failure.ts'
import { formatCount, formatRate } from '../shared/format.ts'
import { describeProgress } from '../shared/progress.ts'
import { tldrPrompt, Unreadable } from './text.ts'
import { buildView, type View } from './view.ts'

/** More than any summary of one or two sentences takes; a model that rambles on is cut off here. */
const MAX_TOKENS = 128

export class TldrWidget extends HTMLElement {
  static observedAttributes = ['model']

  #view: View = buildView(this.attachShadow({ mode: 'open' }))
  #model: Promise<BitNet> | null = null
  #running: AbortController | null = null

  constructor() {
    super()
    this.#view.summarize.addEventListener('click', () => this.summarize())
    this.#view.own.addEventListener('submit', event => {
      event.preventDefault()
      this.summarize(this.#view.text.value)
    })
    this.#view.stop.addEventListener('click', () => this.stop())
  }

  connectedCallback() {
    if (!this.hasAttribute('preload')) return
    // A failure is told when somebody wants a summary: that tries again.
    whenIdle(() => this.isConnected && this.#load().catch(() => {}))
  }

  disconnectedCallback() {
    this.#drop()
  }

  attributeChangedCallback() {
    this.#drop()
  }

  /** Sums up `text`, or else the element that `for` names. Errors are shown in the widget and told by `tldr-error`. */
  async summarize(text?: string): Promise<void> {
    if (this.#running) return
    const running = (this.#running = new AbortController())
    this.#view.start()
    this.#tell('tldr-start', null)
    try {
      await this.#write(tldrPrompt(text ?? this.#target()), running.signal)
    } catch (error) {
      if (!running.signal.aborted) this.#fail(error)
    } finally {
      this.#view.end(running.signal.aborted)
      this.#running = null
    }
  }

  /** Ends the summary, or the load before it; what was downloaded is kept. */
  stop() {
    this.#running?.abort(new DOMException('The summary was stopped.', 'AbortError'))
  }

  async #write(prompt: string, signal: AbortSignal) {
    // A load that began before this summary does not end with it, but is not waited for either.
    const model = await Promise.race([this.#load(signal), rejection(signal)])
    this.#view.note('Reading …')
    const generation = model.generate(prompt, { temperature: 0, maxTokens: MAX_TOKENS, signal })
    generation.stats.catch(() => {}) // The loop reports the same error.
    let summary = ''
    for await (const piece of generation) {
      if (!summary) this.#view.note('')
      summary += piece
      this.#view.append(piece)
      this.#tell('tldr-text', piece)
    }
    signal.throwIfAborted()
    const stats = await generation.stats
    const cut = stats.finishReason === 'length' ? ', cut off' : ''
    this.#view.note(`${formatCount(stats.completionTokens)} tokens, ${formatRate(stats.decodeTokensPerSecond)}${cut}`)
    this.#tell('tldr-done', { summary, stats })
  }

  /** The model, loaded at the first call; after a failure the next call tries again. */
  async #load(signal?: AbortSignal): Promise<BitNet> {
    const url = this.getAttribute('model')
    if (!url) throw new Unreadable('The element has no model attribute.')
    const onProgress = (progress: Progress) => {
      this.#view.progress(progress.fraction, describeProgress(progress))
      this.#tell('tldr-progress', progress)
    }
    const mine = (this.#model ??= BitNet.load(new URL(url, document.baseURI), { signal, onProgress }))
    try {
      return await mine
    } catch (error) {
      if (this.#model === mine) this.#model = null
      throw error
    } finally {
      this.#view.progress(null, '')
    }
  }

  #target(): string {
    const name = this.getAttribute('for') ?? ''
    const target = document.getElementById(name) ?? (name && document.querySelector<HTMLElement>(name))
    if (!target) throw new Unreadable(`No element of this page is “${name}”.`)
    return target.innerText
  }

  #fail(error: unknown) {
    const failure = describeFailure(error, 'This text is too long for the model: take a part of it.')
    this.#view.fail(failure)
    this.#tell('tldr-error', { code: failure.code, message: failure.message })
    // A model whose device is gone is of no more use.
    if (failure.code === 'device-lost') this.#drop()
  }

  /** Frees the model. */
  #drop() {
    this.stop()
    this.#model?.then(model => model.dispose()).catch(() => {}) // A load that failed was told of where it failed.
    this.#model = null
  }

  #tell(type: string, detail: unknown) {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }))
  }
}

/** Not every browser knows idle callbacks. */
function whenIdle(job: () => void) {
  if ('requestIdleCallback' in window) requestIdleCallback(job)
  else setTimeout(job, 200)
}

/** Rejects when the signal aborts. */
function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}

// A page may embed the script twice.
if (!customElements.get('tldr-widget')) customElements.define('tldr-widget', TldrWidget)
