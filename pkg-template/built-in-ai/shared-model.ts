// The model that all sessions of a page share.
import { exception } from './errors.js'
import { checked } from './settings.js'
import type { Checked, Settings } from './settings.js'
import { fetched } from '../error.js'
import { unlessAborted } from '../page/abort.js'
import type { BitNet } from '../page/model.js'

/** Whether a session can be had: as in the drafts. */
export type Availability = 'unavailable' | 'downloadable' | 'downloading' | 'available'

/** The package without this entry. It is fetched when a model is asked for. */
const core = () => fetched(() => import('../page/had.js'))

/** A load. It may also have ended with a model. */
interface Loading {
  model: Promise<BitNet>
  stop: AbortController
  /** `undefined` until it is known; `downloadable` while it waits for permission. */
  state: Availability | undefined
  isReady: boolean
  onProgress: Set<(share: number) => void>
  /** The number of callers that wait for it. */
  waiting: number
}

const unanswered = () => exception('AbortError', 'other settings came before the visitor had answered')

/** The model of some settings. */
export class SharedModel {
  readonly settings: Checked
  #loading: Loading | undefined
  #sessions = 0
  #isReplaced = false
  /** Whether the page's own model answers no more. */
  #hasEnded = false

  constructor(settings: Checked) {
    this.settings = settings
    void settings.model?.ended?.then(() => { this.#hasEnded = true })
  }

  /** Whether the model can answer here, now or after a download. */
  async availability(): Promise<Availability> {
    const { url, model } = this.settings
    // A model that had ended before `configure` is known to have by now.
    await undefined
    if (model) return this.#hasEnded ? 'unavailable' : 'available'
    if (url === undefined) return 'unavailable'
    if (this.#loading?.state) return this.#loading.state
    const { state } = await (await core()).had(url, this.settings.load)
    return state === 'downloadable' && this.settings.mayDownload === false ? 'unavailable' : state
  }

  /**
   * The model. The first call loads it, and so does the first call after a failure. A load is aborted
   * when all callers that wait for it have stopped.
   */
  async load(signal: AbortSignal | undefined, onProgress: (share: number) => void): Promise<BitNet> {
    const { url, model } = this.settings
    if (this.#hasEnded) throw exception('InvalidStateError', 'the model that `configure` was given has ended')
    if (model) return model
    if (url === undefined) throw exception('NotSupportedError', 'no model: call `configure({ url })` before')
    const loading = (this.#loading ??= this.#begin(url))
    loading.onProgress.add(onProgress)
    loading.waiting += 1
    try {
      return await unlessAborted(signal, () => loading.model)
    } finally {
      loading.onProgress.delete(onProgress)
      loading.waiting -= 1
      if (signal?.aborted && loading.waiting === 0 && !loading.isReady) this.#end(loading)
    }
  }

  /** Counts a session, which keeps the model. Gives a function to call once, at its end. */
  join(): () => void {
    this.#sessions += 1
    let isIn = true
    return () => {
      if (isIn) this.#sessions -= 1
      isIn = false
      this.#freeUnused()
    }
  }

  /**
   * Other settings hold for new sessions. Frees the model when the last session has ended. A visitor who has not
   * answered yet is not waited for.
   */
  replace(): void {
    this.#isReplaced = true
    if (this.#loading?.state === 'downloadable' && this.#asks) this.#end(this.#loading, unanswered())
    this.#freeUnused()
  }

  /** Whether the visitor is asked. */
  get #asks(): boolean {
    return typeof this.settings.mayDownload === 'function'
  }

  #freeUnused(): void {
    if (this.#isReplaced && this.#sessions === 0 && this.#loading) this.#end(this.#loading)
  }

  #end(loading: Loading, reason?: DOMException): void {
    if (this.#loading !== loading) return
    this.#loading = undefined
    loading.stop.abort(reason)
    loading.model.then(model => model.dispose()).catch(() => {}) // Callers that waited have got the error.
  }

  #begin(url: string): Loading {
    const stop = new AbortController()
    const onProgress = new Set<(share: number) => void>()
    const tell = (share: number) => onProgress.forEach(listener => listener(share))
    const loading: Omit<Loading, 'model'> = { stop, state: undefined, isReady: false, onProgress, waiting: 0 }
    const load = async () => {
      const { BitNet, had } = await core()
      const { state, reason } = await had(url, this.settings.load)
      if (reason !== undefined) throw exception('NotSupportedError', reason)
      loading.state = state
      if (state === 'downloadable') {
        if (this.#isReplaced && this.#asks) throw unanswered()
        const { permit } = await fetched(() => import('./permit.js'))
        await permit(url, this.settings, stop.signal)
        loading.state = 'downloading'
      }
      stop.signal.throwIfAborted()
      const model = await BitNet.load(url, {
        ...this.settings.load,
        ...(this.settings.mayDownload === false && { cache: 'only' }),
        signal: stop.signal,
        onProgress: ({ fraction }) => tell(fraction)
      })
      loading.state = 'available'
      loading.isReady = true
      return model
    }
    const begun: Loading = Object.assign(loading, { model: load() })
    const end = () => this.#end(begun)
    // If the thread of a model fails, the next session loads it again.
    begun.model.then(({ ended }) => ended.then(end), end)
    return begun
  }
}

/** The models of the present settings: the one that answers, and the one that embeds, which may be the same. */
let shared = of({})

/** The model of the present settings. `embeds` says that it is to embed texts. */
export const sharedModel = (embeds = false): SharedModel => embeds ? shared.embeds : shared.answers

function of({ embedder, ...settings }: Checked) {
  const answers = new SharedModel(settings)
  if (!embedder) return { answers, embeds: answers }
  const { url, model, load } = embedder
  return { answers, embeds: new SharedModel({ ...settings, url, model, load }) }
}

/**
 * Sets the model and how it is had, for sessions that are created from now on. Those that exist keep the model
 * that they have; it is freed when the last of them is destroyed.
 *
 * Throws a `BitNetError` with `bad-option` for wrong settings.
 */
export function configure(settings: Settings): void {
  const next = of(checked(settings))
  for (const model of new Set([shared.answers, shared.embeds])) model.replace()
  shared = next
}
