// `<tldr-widget>`: an element that summarises a text of the page, or a text that the reader pastes.
// See docs/WIDGET.md for its attributes, events, CSS parts and custom properties.
import type { BitNet } from './page/model.js'
import type { Progress, Stats } from './types.js'
import { browserCan, browserSummary } from './widget/browser.js'
import type { Wish } from './widget/browser.js'
import { ENGLISH } from './widget/labels.js'
import { labelsOf } from './widget/language.js'
import { rejection, SharedModel } from './widget/model.js'
import type { User } from './widget/model.js'
import { textOf, Unreadable } from './widget/text.js'
import { buildView } from './widget/view.js'
import type { View } from './widget/view.js'
import {
  describeFailure, describeNote, describeProgress, formatBytes, formatCount, formatRate
} from './words.js'
import type { Advice } from './words.js'

/** The model of an element that names none: one revision, and the hash of its file. */
const DEFAULT_MODEL =
  'https://huggingface.co/microsoft/bitnet-b1.58-2B-4T-gguf/resolve/a1f2f1c765812aa8af3f6eda4a313707064bba15/ggml-model-i2_s.gguf'
const DEFAULT_INTEGRITY = 'sha256-QiGyUv3V/SXhWEet/rXuiIhlBrpQuKNFSDdEkohMIWI='

const ADVICE: Advice = {
  'device-lost': 'Click again: that brings the model back.'
}

/** Node has no elements, but may import this file. */
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement)

export class TldrWidget extends Base {
  static observedAttributes = ['model', 'integrity', 'lang']

  #view: View = buildView(this.attachShadow({ mode: 'open' }))
  #model: SharedModel | undefined
  #running: AbortController | undefined
  #labels = ENGLISH
  #language = 'en'
  /** Aborts when the element leaves the page or gets another model. */
  #leaving = new AbortController()
  #user: User = {
    onProgress: progress => {
      if (this.#running) this.#show(progress)
      this.#tell('tldr-progress', progress)
    },
    onLost: () => {
      // If a summary is running, it fails and shows that.
      if (!this.#running) this.#view.note(this.#labels.lost)
    }
  }

  constructor() {
    super()
    this.#view.label(this.#labels, this.#language)
    this.#view.summarize.addEventListener('click', () => void this.summarize())
    this.#view.own.addEventListener('submit', event => {
      event.preventDefault()
      void this.summarize(this.#view.text.value)
    })
    this.#view.stop.addEventListener('click', () => this.stop())
    this.#view.decline.addEventListener('click', () => this.stop())
  }

  connectedCallback(): void {
    void this.#speak()
    if (!this.hasAttribute('preload')) return
    // If this fails, the first summary tries again, and shows the reason.
    whenIdle(() => this.isConnected && this.#preload().catch(() => {}))
  }

  disconnectedCallback(): void {
    // If the element was only moved, it is back by then.
    queueMicrotask(() => { if (!this.isConnected) this.#leave() })
  }

  attributeChangedCallback(name: string): void {
    if (name === 'lang') void this.#speak()
    else this.#leave()
  }

  /**
   * Summarises `text`, or else the element that `for` names, or else the article of this page. It
   * never rejects: the widget shows errors, and fires `tldr-error`. Does nothing while a summary is
   * being written.
   */
  async summarize(text?: string): Promise<void> {
    if (this.#running) return
    const running = (this.#running = new AbortController())
    this.#view.start(this.getAttribute('type') === 'key-points')
    this.#tell('tldr-start', null)
    try {
      const said = text ?? await textOf(this.getAttribute('for'))
      running.signal.throwIfAborted()
      if (said.trim() === '') throw new Unreadable(this.#labels.empty, this.#language)
      await this.#write(said, running.signal)
    } catch (error) {
      if (!running.signal.aborted) this.#fail(error)
    } finally {
      const { aborted } = running.signal
      this.#running = undefined
      this.#view.end(aborted)
      if (aborted) this.#tell('tldr-stop', null)
      // No event will tell that the element has left.
      if (!this.isConnected) this.#leave()
    }
  }

  /** Stops the summary, or the load before it. Downloaded bytes are kept. */
  stop(): void {
    this.#running?.abort(new DOMException('The summary was stopped.', 'AbortError'))
  }

  async #write(text: string, signal: AbortSignal): Promise<void> {
    const texts = await this.#byBrowser(text, signal)
    // The element may have left meanwhile. Then it must not join again.
    signal.throwIfAborted()
    if (texts) return this.#finish(await this.#append(texts), undefined)

    const model = this.#join()
    const loaded = await this.#load(model, signal)
    this.#view.note(model.isLost ? this.#labels.restoring : this.#labels.reading)
    const onProgress = ({ done, passages }: { done: number, passages: number }) => {
      const part = Math.min(done + 1, passages)
      if (passages > 1) this.#view.note(this.#labels.readingPart(part, passages))
    }
    const generation = loaded.summarize(text, { ...this.#wish(), onProgress, signal })
    generation.stats.catch(() => {}) // The loop throws the same error, so it is not lost.
    const summary = await this.#append(generation, () => { model.isLost = false })
    signal.throwIfAborted()
    this.#finish(summary, await generation.stats)
  }

  /**
   * The texts of the browser's own summary, if the page prefers it and the browser can write one.
   */
  async #byBrowser(text: string, signal: AbortSignal): Promise<AsyncIterable<string> | undefined> {
    if (this.getAttribute('prefer') !== 'browser') return undefined
    const can = await Promise.race([browserCan(this.#wish()), rejection(signal)])
    if (can === 'never') return undefined
    if (can === 'later') await this.#ask(this.#labels.theirModel, new Promise(() => {}), signal)
    const onProgress = (fraction: number) =>
      this.#view.progress(fraction, 'The browser loads its model', [])
    this.#view.note(this.#labels.reading)
    return browserSummary(text, this.#wish(), onProgress, signal).finally(() => this.#view.loaded())
  }

  /** Shows a summary as it comes. Calls `begin` when its first text comes. */
  async #append(texts: AsyncIterable<string>, begin = () => {}): Promise<string> {
    let summary = ''
    for await (const text of texts) {
      if (!summary) {
        this.#view.note('')
        begin()
      }
      summary += text
      this.#view.append(text)
      this.#tell('tldr-text', text)
    }
    return summary
  }

  #finish(summary: string, stats: Stats | undefined): void {
    if (stats) {
      const rate = formatRate(stats.decodeTokensPerSecond)
      const tokens = formatCount(stats.completionTokens)
      this.#view.note(this.#labels.written(tokens, rate, stats.finishReason === 'length'))
    } else {
      this.#view.note(this.#labels.byBrowser)
    }
    this.#tell('tldr-done', { summary, stats })
  }

  /** The options that the attributes ask for. The model refuses unknown values. */
  #wish(): Wish {
    const wish: Record<string, string> = {}
    for (const name of ['type', 'length', 'context']) {
      const value = this.getAttribute(name)
      if (value !== null) wish[name] = value
    }
    return wish
  }

  /** Loads the model. If it is not stored, or another file is, asks before it is downloaded. */
  async #load(model: SharedModel, signal: AbortSignal): Promise<BitNet> {
    for (;;) {
      await this.#permit(model, signal)
      // A preload may be running already, and have nothing new to report for a while.
      if (model.progress) this.#show(model.progress)
      try {
        return await model.load(signal)
      } catch (error) {
        if (signal.aborted || !model.isUnusable) throw error
      } finally {
        this.#view.loaded()
      }
    }
  }

  /**
   * Resolves when the model may be loaded: when the visitor has agreed, or if there is nothing to
   * ask.
   */
  async #permit(model: SharedModel, signal: AbortSignal): Promise<void> {
    if (model.isAllowed) return
    const bytes = await Promise.race([model.missing(signal), rejection(signal)])
    if (bytes === 0) return
    const size = this.#labels.size(bytes === undefined ? undefined : formatBytes(bytes))
    this.#tell('tldr-consent', { url: model.url, bytes })
    await this.#ask(`${this.#labels.ourModel} ${size}`, model.allowed, signal)
    model.allow()
  }

  /**
   * Resolves when the visitor agrees to a download: here, or elsewhere, when `elsewhere` resolves.
   */
  async #ask(said: string, elsewhere: Promise<void>, signal: AbortSignal): Promise<void> {
    const agreed = this.#view.ask(said)
    try {
      await Promise.race([agreed, elsewhere, rejection(signal)])
    } finally {
      this.#view.asked()
    }
  }

  /** Takes the labels in the element's language: its own `lang`, else that of an element around it. */
  async #speak(): Promise<void> {
    const asked = languageOf(this)
    const { labels, language } = await labelsOf(asked)
    // The attribute may have changed meanwhile.
    if (asked !== languageOf(this)) return
    this.#labels = labels
    this.#language = language
    this.#view.label(labels, language)
  }

  async #preload(): Promise<void> {
    const { signal } = this.#leaving
    const model = this.#join()
    if (model.isAllowed || await model.missing(signal) === 0) await model.load(signal)
  }

  /** The model that this element shares with others. */
  #join(): SharedModel {
    const named = this.getAttribute('model')
    const url = new URL(named ?? DEFAULT_MODEL, document.baseURI)
    url.hash = ''
    const integrity = this.getAttribute('integrity') ?? (named === null ? DEFAULT_INTEGRITY : undefined)
    this.#model ??= SharedModel.join(url.href, this.#user, integrity)
    if (this.getAttribute('consent') === 'given') this.#model.allow()
    return this.#model
  }

  #leave(): void {
    this.stop()
    this.#leaving.abort()
    this.#leaving = new AbortController()
    this.#model?.leave(this.#user)
    this.#model = undefined
  }

  #show(progress: Progress): void {
    const { phase, fraction, notes } = progress
    // The model can be used, even while it is still being stored.
    if (phase === 'storing' || phase === 'stored') return
    this.#view.progress(fraction, describeProgress(progress), notes.map(describeNote))
  }

  #fail(error: unknown): void {
    const failure = describeFailure(error, ADVICE)
    if (failure.code === 'device-lost' && this.#model) this.#model.isLost = true
    // The worker has ended and answers no more; or the GPU was lost, and the stored file is gone.
    if (failure.code === 'internal' || failure.code === 'not-cached') this.#model?.giveUp()
    this.#view.fail(failure, error instanceof Unreadable ? error.language : 'en')
    this.#tell('tldr-error', { code: failure.code, message: failure.message })
  }

  #tell(type: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }))
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'tldr-widget': TldrWidget
  }
}

/** The language of an element's text, as the page says. */
const languageOf = (element: Element): string =>
  (element.closest<HTMLElement>('[lang]') ?? document.documentElement).lang

/** Runs a job when the page is idle. In browsers that cannot tell, runs it a little later. */
function whenIdle(job: () => void): void {
  if ('requestIdleCallback' in globalThis) requestIdleCallback(job)
  else setTimeout(job, 200)
}

// A page may embed the script twice.
if (globalThis.customElements && !customElements.get('tldr-widget')) {
  customElements.define('tldr-widget', TldrWidget)
}
