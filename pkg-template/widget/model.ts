// The models of a page's widgets. All widgets with one address share one model.
import { fetched } from '../error.js'
import type { BitNet } from '../page/model.js'
import type { ErrorCode, Progress } from '../types.js'

/** The package without the widget. It is fetched when a summary is wanted. */
const core = async () => (await fetched(() => import('../page/model.js'))).BitNet

/** The events of a model for its widgets. */
export interface User {
  onProgress(progress: Progress): void
  /** The GPU was lost; the next summary brings the model back. */
  onLost(): void
}

/** A load. It may also have ended with a model. */
interface Loading {
  model: Promise<BitNet>
  stop: AbortController
  isReady: boolean
  /** Its last report. */
  progress?: Progress
}

const models = new Map<string, SharedModel>()

export class SharedModel {
  readonly url: string
  #key: string
  #integrity: string | undefined
  /** Whether the GPU was lost since the last summary. */
  isLost = false
  #users = new Set<User>()
  /** The number of callers that wait in `load`. */
  #waiting = 0
  #loading: Loading | undefined
  #allow = () => {}
  /**
   * Resolves when the model may be downloaded, because a widget's visitor or page has allowed it.
   */
  readonly allowed = new Promise<void>(resolve => { this.#allow = resolve })
  #isAllowed = false
  /** Whether the last load found that what is stored is damaged, or no file with the hash. */
  #isUnusable = false

  /**
   * The model at an address, for `user` until it leaves. With `integrity` its file must have that
   * hash. Widgets that name another hash share another model.
   */
  static join(url: string, user: User, integrity?: string): SharedModel {
    const key = JSON.stringify([url, integrity])
    const model = models.get(key) ?? new SharedModel(url, key, integrity)
    models.set(key, model)
    model.#users.add(user)
    return model
  }

  private constructor(url: string, key: string, integrity: string | undefined) {
    this.url = url
    this.#key = key
    this.#integrity = integrity
  }

  /** Frees the model when its last user has left. */
  leave(user: User): void {
    this.#users.delete(user)
    if (this.#users.size > 0) return
    models.delete(this.#key)
    this.giveUp()
  }

  /** Frees the model. The next call of `load` loads it again. */
  giveUp(): void {
    this.#loading?.stop.abort()
    this.#loading?.model.then(model => model.dispose()).catch(() => {}) // Callers that waited have got the error.
    this.#loading = undefined
  }

  get isAllowed(): boolean {
    return this.#isAllowed
  }

  /** Whether a load has failed that might not download, so that it has to be asked for. */
  get isUnusable(): boolean {
    return this.#isUnusable
  }

  allow(): void {
    this.#isAllowed = true
    this.#allow()
  }

  /** The progress of the load, if one runs and has reported. */
  get progress(): Progress | undefined {
    return this.#loading?.isReady ? undefined : this.#loading?.progress
  }

  /** Bytes that are still to be downloaded. 0 once all have come; `undefined` if unknown. */
  async missing(signal?: AbortSignal): Promise<number | undefined> {
    if (this.#loading) return 0
    const stored = await (await core()).cache.missing(this.url, signal ? { signal } : {})
    if (stored !== 0 || !this.#isUnusable) return stored
    // Another file is stored. All of the right one has to come.
    return (await fetched(() => import('../page/missing.js'))).missing(this.url, [], signal)
  }

  /**
   * The model. The first call loads it, and so does the first call after a failure. Until a
   * download is allowed, only a stored file is loaded; if there is none that can be, `isUnusable`
   * says so. A load is aborted when all callers that wait for it have stopped.
   */
  async load(signal: AbortSignal): Promise<BitNet> {
    signal.throwIfAborted()
    const loading = (this.#loading ??= this.#begin())
    this.#waiting += 1
    try {
      return await Promise.race([loading.model, rejection(signal)])
    } finally {
      this.#waiting -= 1
      if (signal.aborted && this.#waiting === 0 && !loading.isReady) {
        loading.stop.abort()
        if (this.#loading === loading) this.#loading = undefined
      }
    }
  }

  #begin(): Loading {
    const stop = new AbortController()
    const isAllowed = this.#isAllowed
    this.#isUnusable = false
    const onProgress = (progress: Progress) => {
      loading.progress = progress
      for (const user of this.#users) user.onProgress(progress)
    }
    const model = core().then(BitNet =>
      BitNet.load(this.url, {
        signal: stop.signal,
        onProgress,
        cache: isAllowed ? 'use' : 'only',
        ...(this.#integrity === undefined ? {} : { integrity: this.#integrity })
      }))
    const loading: Loading = { model, stop, isReady: false }
    model.then(model => {
      loading.isReady = true
      this.isLost = false
      void this.#watch(model)
    }, ({ code }: { code?: ErrorCode }) => {
      if (this.#loading !== loading) return
      this.#loading = undefined
      this.#isUnusable = !isAllowed && (code === 'integrity' || code === 'not-cached')
    })
    return loading
  }

  /** Tells the users of each loss of the GPU. After `dispose()` there are none. */
  async #watch(model: BitNet): Promise<void> {
    for (;;) {
      await model.lost
      // A summary that fails may have noticed the loss first.
      const isKnown = this.isLost
      this.isLost = true
      if (!isKnown) for (const user of this.#users) user.onLost()
    }
  }
}

/** Rejects with the signal's reason when it aborts. */
export function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
