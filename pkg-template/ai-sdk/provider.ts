// Makes models by their addresses. Models with the same address and the same settings are loaded once.
import { TritloomEmbeddingModel } from './embedding.js'
import { noSuchModel } from './errors.js'
import { checkSource, Held, isLoaded, nameOf } from './held.js'
import { TritloomLanguageModel } from './model.js'
import type { LoadedModel, TritloomSettings } from './types.js'
import { absolute } from '../address.js'
import { checkOptions } from '../check.js'
import type { Source } from '../types.js'

/** Makes models for the AI SDK. It can be registered as a provider with `createProviderRegistry`. */
export interface TritloomProvider {
  /**
   * The model at an address, of other bytes, or one that is loaded already. Nothing is fetched until it is
   * needed. Calls with one address and the same settings give models that share what they load. `onProgress`
   * may differ: the latest is called.
   *
   * Throws `bad-option` for settings that are no object, and for settings of a loaded model.
   */
  (source: Source | LoadedModel, settings?: TritloomSettings): TritloomLanguageModel
  readonly specificationVersion: 'v4'
  /** The same. */
  languageModel(source: Source | LoadedModel, settings?: TritloomSettings): TritloomLanguageModel
  /** The same. */
  chat(source: Source | LoadedModel, settings?: TritloomSettings): TritloomLanguageModel
  /** An embedding model, for `embed` and `embedMany`. */
  embeddingModel(source: Source | LoadedModel, settings?: TritloomSettings): TritloomEmbeddingModel
  /** Throws the SDK's `NoSuchModelError`: a model here writes text or embeds it. */
  imageModel(modelId: string): never
}

/**
 * Makes a provider with its own models. `defaults` are settings of all its models, which a model's own
 * replace.
 */
export function createTritloom(defaults: TritloomSettings = {}): TritloomProvider {
  checkOptions(defaults)
  const byAddress = new Map<string, Held[]>()
  const byObject = new WeakMap<object, Held[]>()
  const knownOf = (source: Source | LoadedModel): Held[] => {
    if (typeof source === 'string' || source instanceof URL) return entryOf(byAddress, keyOf(source))
    return entryOf<object>(byObject, source)
  }
  const heldOf = (source: Source | LoadedModel, settings: TritloomSettings = {}) => {
    checkSource(source)
    checkOptions(settings)
    const all = isLoaded(source) ? settings : { ...defaults, ...settings }
    const known = knownOf(source)
    const asked = new Held(source, all)
    const held = known.find(held => haveSame(held.settings, asked.settings)) ?? asked
    if (held === asked) known.push(held)
    // A component of React gives another function each time.
    else if (settings.onProgress) held.onProgress = settings.onProgress
    return held
  }
  const model = (source: Source | LoadedModel, settings?: TritloomSettings) =>
    new TritloomLanguageModel(source, heldOf(source, settings))
  return Object.assign(model, {
    specificationVersion: 'v4' as const,
    languageModel: model,
    chat: model,
    embeddingModel: (source: Source | LoadedModel, settings?: TritloomSettings) =>
      new TritloomEmbeddingModel(nameOf(source), heldOf(source, settings)),
    imageModel: (modelId: string): never => { throw noSuchModel(modelId, 'imageModel') }
  })
}

/** The same for all ways to write an address. A wrong one is refused when it is used. */
function keyOf(address: string | URL): string {
  try {
    return absolute('source', address).href
  } catch {
    return String(address)
  }
}

/** The list at a key, which is new if there was none. */
function entryOf<Key>(
  map: { get(key: Key): Held[] | undefined, set(key: Key, list: Held[]): unknown }, key: Key
): Held[] {
  const list = map.get(key) ?? []
  map.set(key, list)
  return list
}

/** Whether plain objects have the same values, such as the option `gpu`. Other objects are compared by identity. */
function haveSame(some: object, others: object): boolean {
  const given = (settings: object) => Object.entries(settings).filter(([, value]) => value !== undefined)
  const [one, other] = [given(some), new Map<string, unknown>(given(others))]
  return one.length === other.size && one.every(([name, value]) => isSame(value, other.get(name)))
}

const isSame = (one: unknown, other: unknown): boolean =>
  Object.is(one, other) || (isPlain(one) && isPlain(other) && haveSame(one, other))

const isPlain = (value: unknown): value is object => Object.prototype.toString.call(value) === '[object Object]'
