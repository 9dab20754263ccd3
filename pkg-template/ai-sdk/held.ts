// A model that is loaded when it is first needed, once for all calls.
import type { LoadedModel, TritloomAvailability, TritloomSettings } from './types.js'
import { absolute } from '../address.js'
import { badOption, checkCallback, checkOptions, checkSignal, report } from '../check.js'
import { BitNetError, fetched } from '../error.js'
import type { Progress, Source } from '../types.js'

/** The package without this entry. It is fetched when a model is asked about or loaded. */
const core = () => fetched(() => import('../page/had.js'))

export const isLoaded = (source: Source | LoadedModel): source is LoadedModel =>
  typeof (source as Partial<LoadedModel> | undefined)?.generate === 'function'

/** Refuses values that are neither an address nor an object. The load checks objects. */
export function checkSource(source: unknown): void {
  if (typeof source === 'string' || (typeof source === 'object' && source !== null)) return
  throw badOption('source', 'must be an address, the bytes of a model, or a model')
}

/** The name of a model in answers. */
export function nameOf(source: Source | LoadedModel): string {
  const named = isLoaded(source) ? source.info.name : source
  if (typeof named === 'string' && named !== '') return named
  if (source instanceof URL) return source.href
  if (source instanceof Request) return source.url
  return source instanceof Blob && 'name' in source ? String(source.name) : 'tritloom'
}

/** A load that runs or has ended with a model. */
interface Load {
  model: Promise<LoadedModel>
  stop: AbortController
  isReady: boolean
  /** Its last report. */
  fraction: number
  watchers: Set<(fraction: number) => void>
}

export class Held {
  readonly source: Source | LoadedModel
  readonly settings: Omit<TritloomSettings, 'onProgress'>
  /** The latest that was given. */
  onProgress: TritloomSettings['onProgress']
  #load: Load | undefined
  /** The end of the model before. Two at once may be more than the memory holds. */
  #freed: Promise<unknown> = Promise.resolve()

  /**
   * Throws `bad-option` for what is no source, for settings that are no object, and for settings of a model that is
   * loaded. Most settings are checked by the load.
   */
  constructor(source: Source | LoadedModel, settings: TritloomSettings) {
    checkSource(source)
    checkOptions(settings, isLoaded(source) ? [] : undefined)
    const { onProgress, ...others } = settings
    checkSignal(others.signal)
    checkCallback('onProgress', onProgress)
    this.source = source
    this.settings = others
    this.onProgress = onProgress
  }

  get isReady(): boolean {
    return isLoaded(this.source) || this.#load?.isReady === true
  }

  /** The model. After a load that has failed, or if the model's thread has ended, it is loaded anew. */
  load(): Promise<LoadedModel> {
    return isLoaded(this.source) ? Promise.resolve(this.source) : this.#loading(this.source).model
  }

  /** The same. `onProgress` gets the share of the load from 0 to 1, and 1 last. */
  async loadWithProgress(onProgress?: (fraction: number) => void): Promise<void> {
    checkCallback('onProgress', onProgress)
    let told: number | undefined
    const watcher = (fraction: number) => {
      told = fraction
      report(onProgress, fraction)
    }
    const load = isLoaded(this.source) ? undefined : this.#loading(this.source)
    if (load && !load.isReady) {
      watcher(load.fraction)
      load.watchers.add(watcher)
    }
    try {
      await load?.model
      if (told !== 1) watcher(1)
    } finally {
      load?.watchers.delete(watcher)
    }
  }

  #loading(source: Source): Load {
    if (this.#load) return this.#load
    const { signal } = this.settings
    const stop = new AbortController()
    const watchers: Load['watchers'] = new Set()
    const tell = (progress: Progress) => {
      report(this.onProgress, progress)
      // After the load, a model may still be stored.
      if (load.isReady || progress.fraction <= load.fraction) return
      load.fraction = progress.fraction
      for (const watcher of watchers) watcher(progress.fraction)
    }
    const options = {
      ...this.settings, signal: AbortSignal.any(signal ? [signal, stop.signal] : [stop.signal]), onProgress: tell
    }
    const model = Promise.all([core(), this.#freed]).then(([{ BitNet }]) => BitNet.load(source, options))
    const load: Load = { model, stop, isReady: false, fraction: 0, watchers }
    const forget = () => { if (this.#load === load) this.#load = undefined }
    this.#load = load
    model.then(({ ended }) => {
      load.isReady = true
      void ended.then(forget)
    }, forget)
    return load
  }

  /** Whether the model can be had. Rejects with `bad-option` for an address that is none. */
  async availability(): Promise<TritloomAvailability> {
    if (this.isReady) return 'available'
    if (this.#load) return 'downloading'
    const { had } = await core()
    return (await had(addressOf(this.source), this.settings)).state
  }

  /** Frees the model, or ends its load. The next call loads it again, unless it is the caller's own. */
  async dispose(): Promise<void> {
    if (isLoaded(this.source)) return this.source.dispose?.()
    const load = this.#load
    this.#load = undefined
    load?.stop.abort(new BitNetError('disposed', 'the model was disposed'))
    if (load) this.#freed = load.model.then(model => model.dispose?.(), () => {})
    await this.#freed
  }
}

/** The address of a model; `undefined` if nothing of it has to be downloaded. */
function addressOf(source: Source | LoadedModel): string | undefined {
  const url = source instanceof Request ? source.url : source
  if (typeof url !== 'string' && !(url instanceof URL)) return undefined
  return absolute('source', url).href
}
