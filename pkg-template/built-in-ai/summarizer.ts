// `Summarizer`, as the Writing Assistance APIs have it.
import { availabilityOf, created, Life } from './creation.js'
import type { Held, Wanted } from './creation.js'
import { tooLong } from './errors.js'
import { dictionary, languageTags, oneOf, required, text } from './idl.js'
import type { Availability } from './shared-model.js'
import type { CreateOptions, SignalOptions } from './types.js'
import { unlessAborted } from '../page/abort.js'
import type { SummarizeOptions } from '../types.js'

export type SummarizerType = NonNullable<SummarizeOptions['type']>
export type SummarizerFormat = NonNullable<SummarizeOptions['format']>
export type SummarizerLength = NonNullable<SummarizeOptions['length']>
export type ModelPreference = 'auto' | 'speed' | 'capability'

const TYPES: readonly SummarizerType[] = ['tldr', 'teaser', 'key-points', 'headline']
const FORMATS: readonly SummarizerFormat[] = ['plain-text', 'markdown']
const LENGTHS: readonly SummarizerLength[] = ['short', 'medium', 'long']
export const PREFERENCES: readonly ModelPreference[] = ['auto', 'speed', 'capability']

/** Options of `Summarizer.availability()`. */
export interface SummarizerCreateCoreOptions {
  /** Default `key-points`. */
  type?: SummarizerType
  /** Default `markdown`. */
  format?: SummarizerFormat
  /** Default `short`. */
  length?: SummarizerLength
  /** Taken and not used: there is one model. */
  preference?: ModelPreference
  expectedInputLanguages?: Iterable<string>
  expectedContextLanguages?: Iterable<string>
  /** The model is asked for a summary in this language. */
  outputLanguage?: string
}

/** Options of `Summarizer.create()`. */
export interface SummarizerCreateOptions extends SummarizerCreateCoreOptions, CreateOptions {
  /** Further facts for all summaries. */
  sharedContext?: string
}

/** Options of a summary. */
export interface SummarizerSummarizeOptions extends SignalOptions {
  /** Further facts for this summary. */
  context?: string
}

/** The options that a session keeps. */
interface Read {
  type: SummarizerType
  format: SummarizerFormat
  length: SummarizerLength
  sharedContext: string
  expectedInputLanguages: readonly string[] | null
  expectedContextLanguages: readonly string[] | null
  outputLanguage: string | null
}

const KEY = Symbol('Summarizer')

/**
 * Sums up texts of any length, as `model.summarize` does: the draft's `Summarizer`. Errors are those of
 * `LanguageModel`. Summaries of one session run side by side.
 */
export class Summarizer {
  #life: Life
  #read: Read

  private constructor(key: typeof KEY, held: Held, read: Read, signal?: AbortSignal) {
    if (key !== KEY) throw new TypeError('Illegal constructor')
    this.#life = new Life(held, signal)
    this.#read = read
  }

  /** Whether a session with these options can be had, now or after a download. */
  static async availability(options: SummarizerCreateCoreOptions = {}): Promise<Availability> {
    return availabilityOf(readOptions(options).wanted)
  }

  /**
   * Begins a session. The first one of the page loads the model. Rejects as `LanguageModel.create` does, and with
   * `QuotaExceededError` if `sharedContext` fills the context window.
   */
  static async create(options: SummarizerCreateOptions = {}): Promise<Summarizer> {
    const { wanted, read } = readOptions(options)
    return created(wanted, dictionary(options, 'options'), async (held, signal) => {
      const { contextLength } = held.model.info
      const { sharedContext: content } = read
      const tokens = content.trim() === '' ? 0 : await held.model.countTokens([{ role: 'user', content }])
      if (tokens >= contextLength) throw tooLong(tokens, contextLength)
      return new Summarizer(KEY, held, read, signal)
    })
  }

  /** The summary of a text. A text without words has an empty one. */
  async summarize(input: string, options: SummarizerSummarizeOptions = {}): Promise<string> {
    const [asked, context, signal] = this.#ask(input, options)
    return unlessAborted(signal, () => this.#life.run(signal, async () => {
      let summary = ''
      await this.#write(asked, context, signal, part => { summary += part })
      return summary
    }))
  }

  /** The summary as it comes, in texts to be joined. Throws for wrong arguments. */
  summarizeStreaming(input: string, options: SummarizerSummarizeOptions = {}): ReadableStream<string> {
    const [asked, context, given] = this.#ask(input, options)
    return this.#life.stream<string>(given, (signal, onChunk) => this.#write(asked, context, signal, onChunk))
  }

  /** The tokens of a text and its context. */
  async measureInputUsage(input: string, options: SummarizerSummarizeOptions = {}): Promise<number> {
    const [asked, context, signal] = this.#ask(input, options)
    const messages = [{ role: 'user' as const, content: [context, asked].filter(Boolean).join('\n\n') }]
    return unlessAborted(signal, () => this.#life.run(signal, () => this.#life.held.model.countTokens(messages)))
  }

  /** There is no limit: a text that is longer than the context is read in passages. */
  get inputQuota(): number {
    return Infinity
  }

  get sharedContext(): string { return this.#read.sharedContext }
  get type(): SummarizerType { return this.#read.type }
  get format(): SummarizerFormat { return this.#read.format }
  get length(): SummarizerLength { return this.#read.length }
  get expectedInputLanguages(): readonly string[] | null { return this.#read.expectedInputLanguages }
  get expectedContextLanguages(): readonly string[] | null { return this.#read.expectedContextLanguages }
  get outputLanguage(): string | null { return this.#read.outputLanguage }

  /** Ends the session: its calls reject with `InvalidStateError`, now and later. */
  destroy(): void {
    this.#life.end()
  }

  /** The text, all facts about it, and the signal of a call. */
  #ask(input: unknown, options: unknown): [string, string, AbortSignal] {
    const { context, signal } = dictionary(options, 'options')
    const asked = required(input, 'the text')
    const { sharedContext, outputLanguage } = this.#read
    const about = [sharedContext, context === undefined ? '' : text(context), outputLanguage ? wish(outputLanguage) : '']
    return [asked, about.filter(Boolean).join('\n'), this.#life.signal(signal)]
  }

  async #write(input: string, context: string, signal: AbortSignal, onText: (text: string) => void): Promise<void> {
    if (input.trim() === '') return
    const { type, format, length } = this.#read
    const summary = this.#life.held.model.summarize(input, { type, format, length, context, signal })
    summary.stats.catch(() => {}) // The loop throws the same error.
    for await (const part of summary) onText(part)
  }
}

/** Asks for a language by its English name. */
const wish = (tag: string): string =>
  `Write in ${new Intl.DisplayNames('en', { type: 'language' }).of(tag)}.`

function readOptions(options: unknown): { wanted: Wanted, read: Read } {
  const given = dictionary(options, 'options')
  const list = (name: string) => given[name] === undefined ? null : Object.freeze(languageTags(given[name], name))
  const optional = <T extends string>(name: string, values: readonly T[], otherwise: T): T =>
    given[name] === undefined ? otherwise : oneOf(given[name], values, name)
  const outputLanguage = given.outputLanguage === undefined ? null : languageTags([given.outputLanguage], 'outputLanguage')[0]!
  optional('preference', PREFERENCES, 'auto')
  const read = {
    type: optional('type', TYPES, 'key-points'),
    format: optional('format', FORMATS, 'markdown'),
    length: optional('length', LENGTHS, 'short'),
    sharedContext: given.sharedContext === undefined ? '' : text(given.sharedContext),
    expectedInputLanguages: list('expectedInputLanguages'),
    expectedContextLanguages: list('expectedContextLanguages'),
    outputLanguage
  }
  const languages = [...read.expectedInputLanguages ?? [], ...read.expectedContextLanguages ?? [], ...outputLanguage ? [outputLanguage] : []]
  return { wanted: { name: 'Summarizer', ours: Summarizer, options: given, isSupported: true, languages }, read }
}
