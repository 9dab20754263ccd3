// A custom element that sums up a text of the page, or one that the reader pastes, with one click:
//
//   <tldr-widget for="#article" model="model.gguf"></tldr-widget>
//
// It loads the model at the first click; with the attribute `preload`, as soon as the page is idle.
//
// Events, all of which bubble: `tldr-start`; `tldr-progress` (detail: the package's `Progress`);
// `tldr-text` (detail: the next text); `tldr-done` (detail: `{ summary, stats }`); `tldr-error`
// (detail: `{ code, message }`).
import { BitNet, type Progress } from 'ternlight'
import { describeFailure, type Advice } from '../shared/failure.ts'
import { formatCount, formatRate } from '../shared/format.ts'
import { describeNote, describeProgress } from '../shared/progress.ts'
import { tldrPrompt, Unreadable } from './text.ts'
import { buildView, type View } from './view.ts'

/** More than a summary of one or two sentences takes. It cuts off a model that does not stop. */
const MAX_TOKENS = 128

const ADVICE: Advice = {
  'context-full': 'This text is too long for the model: use only a part of it.',
  'device-lost': 'Click again: that brings the model back.'
}

export class TldrWidget extends HTMLElement {
  static observedAttributes = ['model']

  #view: View = buildView(this.attachShadow({ mode: 'open' }))
  #model: Promise<BitNet> | null = null
  /** Whether the GPU was lost since the last summary: the next one brings the model back. */
  #isLost = false
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
    // If this fails, the first summary tries again and shows why.
    whenIdle(() => this.isConnected && this.#load().catch(() => {}))
  }

  disconnectedCallback() {
    this.#drop()
  }

  attributeChangedCallback() {
    this.#drop()
  }

  /**
   * Sums up `text`, or else the element that `for` names. It never rejects: the widget shows
   * errors, and fires `tldr-error`.
   */
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

  /** Stops the summary, or the load before it. What was downloaded is kept. */
  stop() {
    this.#running?.abort(new DOMException('The summary was stopped.', 'AbortError'))
  }

  async #write(prompt: string, signal: AbortSignal) {
    // Stopping the summary does not end a load that began before it, but no longer waits for it.
    const model = await Promise.race([this.#load(signal), rejection(signal)])
    this.#view.note(this.#isLost ? 'Bringing the model back …' : 'Reading …')
    const generation = model.generate(prompt, { temperature: 0, maxTokens: MAX_TOKENS, signal })
    generation.stats.catch(() => {}) // The loop reports the same error.
    let summary = ''
    for await (const text of generation) {
      if (!summary) this.#view.note('')
      this.#isLost = false
      summary += text
      this.#view.append(text)
      this.#tell('tldr-text', text)
    }
    signal.throwIfAborted()
    const stats = await generation.stats
    const cut = stats.finishReason === 'length' ? ', cut off' : ''
    const rate = formatRate(stats.decodeTokensPerSecond)
    this.#view.note(`${formatCount(stats.completionTokens)} tokens, ${rate}${cut}`)
    this.#tell('tldr-done', { summary, stats })
  }

  /** The model. The first call loads it; after a failure the next call tries again. */
  async #load(signal?: AbortSignal): Promise<BitNet> {
    const url = this.getAttribute('model')
    if (!url) throw new Unreadable('The element has no model attribute.')
    const mine = (this.#model ??= this.#open(new URL(url, document.baseURI), signal))
    try {
      return await mine
    } catch (error) {
      if (this.#model === mine) this.#model = null
      throw error
    } finally {
      this.#view.loaded()
    }
  }

  async #open(url: URL, signal?: AbortSignal): Promise<BitNet> {
    const onProgress = (progress: Progress) => {
      const { fraction, notes } = progress
      this.#view.progress(fraction, describeProgress(progress), notes.map(describeNote))
      this.#tell('tldr-progress', progress)
    }
    const model = await BitNet.load(url, { signal, onProgress })
    this.#isLost = false
    void this.#watch(model)
    return model
  }

  /** Says each time that the GPU is lost. After `dispose()` there are no losses. */
  async #watch(model: BitNet) {
    for (;;) {
      await model.lost
      // A summary that was running fails, and shows that.
      const isKnown = this.#isLost || this.#running
      this.#isLost = true
      if (!isKnown) this.#view.note('The GPU was lost. The next summary brings the model back.')
    }
  }

  #target(): string {
    const name = this.getAttribute('for') ?? ''
    const target =
      document.getElementById(name) ?? (name && document.querySelector<HTMLElement>(name))
    if (!target) throw new Unreadable(`No element of this page is “${name}”.`)
    return target.innerText
  }

  #fail(error: unknown) {
    const failure = describeFailure(error, ADVICE)
    if (failure.code === 'device-lost') this.#isLost = true
    this.#view.fail(failure)
    this.#tell('tldr-error', { code: failure.code, message: failure.message })
  }

  /** Frees the model. */
  #drop() {
    this.stop()
    this.#model?.then(model => model.dispose()).catch(() => {}) // A failed load was shown already.
    this.#model = null
  }

  #tell(type: string, detail: unknown) {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }))
  }
}

/** Runs a job when the page is idle; in browsers that cannot tell, a little later. */
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
