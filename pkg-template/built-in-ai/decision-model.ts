// `DecisionModel`, as Chromium's draft has it, over `model.decide`.
import { availabilityOf, created, Life } from './creation.js'
import type { Held, Wanted } from './creation.js'
import { readExpected } from './expected.js'
import { dictionary, oneOf, required, sequence, text } from './idl.js'
import type { Availability } from './shared-model.js'
import { PREFERENCES } from './summarizer.js'
import type { ModelPreference } from './summarizer.js'
import type { CreateOptions, LanguageModelExpected, SignalOptions } from './types.js'
import { unlessAborted } from '../page/abort.js'
import type { Question, QuestionOption } from '../types.js'

/** A question about texts. */
export interface DecisionModelQuestion {
  /** The name of its decision. No two questions may have the same. */
  id: string
  /** The question itself. */
  prompt: string
  /** `boolean`: yes or no; `choice`: one of `options`; `score`: a number, from 1 to 5 without `options`. */
  type: 'boolean' | 'choice' | 'score'
  /** Two or more, with different labels. Only for a `choice`, which needs them, and a `score`, whose labels are numbers. */
  options?: Iterable<QuestionOption>
}

/** Options of `DecisionModel.availability()`. */
export interface DecisionModelCreateCoreOptions {
  /** Facts that the model has to know for all questions. */
  context?: string
  expectedInputs?: Iterable<LanguageModelExpected>
  questions?: Iterable<DecisionModelQuestion>
  /** Taken and not used: there is one model. Default `auto`. */
  preference?: ModelPreference
}

/** Options of `DecisionModel.create()`. */
export interface DecisionModelCreateOptions extends DecisionModelCreateCoreOptions, CreateOptions {}

/** The decision of a question. */
export interface DecisionModelDecision {
  id: string
  /** The label of the most probable option: `yes` or `no` for a `boolean`. */
  label: string
  /** Its probability. */
  confidence: number
  /** The probability of each option by its label. */
  probabilities: Record<string, number>
  /** Of a `score`: the mean of the labels, weighted by their probabilities. */
  expectedScore?: number
}

interface Read {
  context: string | undefined
  preference: ModelPreference
  ids: readonly string[]
  questions: readonly Question[]
}

const KEY = Symbol('DecisionModel')

/**
 * Decides questions about texts without generating an answer: Chromium's draft of a `DecisionModel`. Errors are those of
 * `LanguageModel`.
 */
export class DecisionModel {
  #life: Life
  #read: Read

  private constructor(key: typeof KEY, held: Held, read: Read, signal?: AbortSignal) {
    if (key !== KEY) throw new TypeError('Illegal constructor')
    this.#life = new Life(held, signal)
    this.#read = read
  }

  /** Whether a session with these options can be had, now or after a download. */
  static async availability(options: DecisionModelCreateCoreOptions = {}): Promise<Availability> {
    return availabilityOf(readOptions(options).wanted)
  }

  /** Begins a session. The first one of the page loads the model. Rejects as `LanguageModel.create` does. */
  static async create(options: DecisionModelCreateOptions = {}): Promise<DecisionModel> {
    const { wanted, read } = readOptions(options)
    return created(wanted, dictionary(options, 'options'), (held, signal) => new DecisionModel(KEY, held, read, signal))
  }

  /** The decisions about a text, by the ids of their questions. */
  async decide(input: string, options: SignalOptions = {}): Promise<Record<string, DecisionModelDecision>> {
    const asked = required(input, 'the text')
    const signal = this.#life.signal(dictionary(options, 'options').signal)
    const { ids, questions, context } = this.#read
    if (questions.length === 0) return {}
    return unlessAborted(signal, () => this.#life.run(signal, async () => {
      const about = context === undefined ? {} : { context }
      const { decisions } = await this.#life.held.model.decide(asked, { ...about, questions, signal })
      return Object.fromEntries(decisions.map(({ label, confidence, probabilities, expectedScore }, n) => {
        const id = ids[n]!
        return [id, { id, label, confidence, probabilities, ...(expectedScore !== undefined && { expectedScore }) }]
      }))
    }))
  }

  get preference(): ModelPreference {
    return this.#read.preference
  }

  /** Ends the session: its calls reject with `InvalidStateError`, now and later. */
  destroy(): void {
    this.#life.end()
  }
}

function readOptions(options: unknown): { wanted: Wanted, read: Read } {
  const given = dictionary(options, 'options')
  const { types, languages } = readExpected(given.expectedInputs, 'expectedInputs')
  const asked = given.questions === undefined ? [] : sequence(given.questions, 'questions').map(questionOf)
  const ids = asked.map(({ id }) => id)
  if (new Set(ids).size < ids.length) throw new TypeError('two questions have the same id')
  const read = {
    context: given.context === undefined ? undefined : text(given.context),
    preference: given.preference === undefined ? 'auto' : oneOf(given.preference, PREFERENCES, 'preference'),
    ids,
    questions: asked.map(({ question }) => question)
  }
  const isSupported = [...types].every(type => type === 'text')
  return { wanted: { name: 'DecisionModel', ours: DecisionModel, options: given, isSupported, languages }, read }
}

function questionOf(given: unknown): { id: string, question: Question } {
  const { id: named, prompt, type: kind, options } = dictionary(given, 'a question')
  const id = required(named, 'the id of a question')
  const question = required(prompt, 'the prompt of a question')
  if (question === '') throw new TypeError('the prompt of a question must not be empty')
  const type = oneOf(kind, ['boolean', 'choice', 'score'], 'the type of a question')
  if (options === undefined) {
    if (type === 'choice') throw new TypeError('a choice needs options')
    return { id, question: { question, type } }
  }
  if (type === 'boolean') throw new TypeError('a boolean has no options')
  const found = sequence(options, 'options').map(optionOf)
  if (found.length < 2 || new Set(found.map(({ label }) => label)).size < found.length) {
    throw new TypeError('a question needs two or more options with different labels')
  }
  if (type === 'score' && !found.every(({ label }) => isNumber(label))) throw new TypeError('the labels of a score must be numbers')
  return { id, question: { question, type, options: found } }
}

/** Whether the engine reads a label as a number. */
const isNumber = (label: string) => /^\s*[-+.\de]+\s*$/i.test(label) && Number.isFinite(Number(label))

function optionOf(given: unknown): QuestionOption {
  const { label, description } = dictionary(given, 'an option')
  return { label: required(label, 'the label of an option'), ...(description !== undefined && { description: text(description) }) }
}
