// The settings of the entry.
import { languageTags } from './idl.js'
import { absolute } from '../address.js'
import { badOption, checkBoolean, checkChoice, checkOptions } from '../check.js'
import type { BitNet } from '../page/model.js'
import type { ChatDefaults, LoadOptions } from '../types.js'

/** A download about which the visitor may be asked. */
export interface Download {
  /** The model's address. */
  url: string
  /** The bytes that would come; `undefined` if the server does not say, or not within five seconds. */
  bytes: number | undefined
  /** Aborts when no session waits for the answer any more: then close the question. */
  signal: AbortSignal
}

/** Settings of `tritloom/built-in-ai`. A name that is not listed is `bad-option`. */
export interface Settings {
  /** The model: the address of a GGUF file. It is loaded by the first session, and all sessions share it. */
  url?: string | URL
  /** Instead of `url`: a model that the page has loaded. The page disposes of it. */
  model?: BitNet
  /** Options of `BitNet.load` for the model at `url`. Default: none. */
  load?: Omit<LoadOptions, 'signal' | 'onProgress'>
  /**
   * The model of `SemanticEmbedder`, if it is another one: a model embeds or answers. Its settings are as those above;
   * the others below hold for both. Default: the one above, which then needs a pooling in its file or in `load`.
   */
  embedder?: Pick<Settings, 'url' | 'model' | 'load'>
  /**
   * Whether the model at `url` may be downloaded, where it is not stored yet.
   *
   * - Default: once the visitor has clicked or pressed a key in the page, as the drafts have it.
   * - `true`: at any time. `false`: never.
   * - A function: asks the visitor each time, before any byte of the model comes. It gives, or resolves to,
   *   whether the download may begin. All sessions wait for its answer, so a question that is closed must
   *   give one, too. `configure` ends the waiting: the sessions then reject with an `AbortError`.
   *
   * `create()` rejects with a `NotAllowedError` if it may not.
   */
  mayDownload?: boolean | ((download: Download) => boolean | Promise<boolean>)
  /**
   * `browser`: if the browser has the same interface and its model can do what the options of a session ask for,
   * the session is the browser's own, and nothing is loaded. Default: `tritloom`.
   */
  prefer?: 'tritloom' | 'browser'
  /**
   * The languages that the model knows, as tags such as `en`. Sessions for others are `unavailable`. Default: any, as a
   * model's file does not say which.
   */
  languages?: readonly string[]
  /**
   * Options of `generate` for each answer of a `LanguageModel`. A session's `samplingMode` goes before these. Default:
   * `thinking: false` if the model has that switch, as the drafts know of no reasoning.
   */
  answers?: ChatDefaults
}

const NAMES = Object.keys({
  url: 0, model: 0, load: 0, embedder: 0, mayDownload: 0, prefer: 0, languages: 0, answers: 0
} satisfies Record<keyof Settings, 0>)

/** Settings that were checked. */
export interface Checked extends Omit<Settings, 'url' | 'languages' | 'embedder'> {
  url?: string
  embedder?: Checked
  /** Each language without script and region. */
  languages?: readonly string[]
}

/** Throws `bad-option`. The options in `load` and `answers` are checked where they are used. */
export function checked(given: Settings): Checked {
  checkOptions(given, NAMES)
  const { url, model, load, embedder, mayDownload, prefer, languages, answers } = given
  if (url !== undefined && model !== undefined) throw badOption('model', 'not together with `url`')
  if (model !== undefined && typeof (model as Partial<BitNet> | null)?.generate !== 'function') {
    throw badOption('model', 'must be a model')
  }
  if (load !== undefined) checkOptions(load)
  if (answers !== undefined) checkOptions(answers)
  if (mayDownload !== undefined && typeof mayDownload !== 'function') checkBoolean('mayDownload', mayDownload)
  if (prefer !== undefined) checkChoice('prefer', prefer, ['tritloom', 'browser'])
  if (embedder !== undefined) checkOptions(embedder, ['url', 'model', 'load'])
  return {
    ...given,
    embedder: embedder === undefined ? embedder : checked(embedder),
    url: url === undefined ? url : absolute('url', url).href,
    languages: languages === undefined ? languages : primaries(languages)
  }
}

function primaries(tags: unknown): string[] {
  try {
    return languageTags(tags, 'languages').map(primary)
  } catch {
    throw badOption('languages', 'must be language tags')
  }
}

/** The language of a tag, without script and region. */
export const primary = (tag: string): string => new Intl.Locale(tag).language
