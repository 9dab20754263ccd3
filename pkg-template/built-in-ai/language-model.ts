// `LanguageModel`, as the Prompt API has it.
import { constraintOf, told } from './constraint.js'
import type { Constraint } from './constraint.js'
import { availabilityOf, created, Life, task } from './creation.js'
import type { Held, Wanted } from './creation.js'
import { exception, tooLong } from './errors.js'
import { Handler } from './events.js'
import { readExpected } from './expected.js'
import { dictionary, oneOf, sequence } from './idl.js'
import { hasWords, messagesOf } from './prompts.js'
import type { Availability } from './shared-model.js'
import { LanguageModelToolCall } from './tool-values.js'
import { toolsOf } from './tools.js'
import type { Tools } from './tools.js'
import type {
  LanguageModelAnswerContent, LanguageModelCreateCoreOptions, LanguageModelCreateOptions, LanguageModelMessageType,
  LanguageModelPrompt, LanguageModelPromptOptions, LanguageModelSamplingMode, SignalOptions
} from './types.js'
import { unlessAborted } from '../page/abort.js'
import type { GenerateOptions, Message, Token } from '../types.js'

/** How the modes draw, from the strictest to the freest. */
const SAMPLING: Record<LanguageModelSamplingMode, Pick<GenerateOptions, 'temperature' | 'topP'>> = {
  'most-predictable': { temperature: 0 },
  'predictable': { temperature: 0.3, topP: 0.9 },
  'slightly-predictable': { temperature: 0.5, topP: 0.95 },
  'balanced': { temperature: 0.7, topP: 0.95 },
  'slightly-creative': { temperature: 0.85, topP: 0.95 },
  'creative': { temperature: 1, topP: 0.95 },
  'most-creative': { temperature: 1.2, topP: 0.98 }
}
const MODES = Object.keys(SAMPLING) as LanguageModelSamplingMode[]

/** The types of content that sessions can take and give. */
const INPUTS: readonly string[] = ['text', 'tool-call', 'tool-response']
const OUTPUTS: readonly string[] = ['text', 'tool-call']

/** The share of the context window that is made free for an answer, by evicting messages. */
const ANSWER_SHARE = 1 / 4

/** Options of a session that were read. */
interface Read {
  wanted: Wanted
  mode: LanguageModelSamplingMode | undefined
  inputs: ReadonlySet<LanguageModelMessageType>
  tools: Tools | undefined
}

/** A prompt that was read. */
interface Asked {
  messages: Message[]
  constraint: Constraint | undefined
  signal: AbortSignal
}

/** The state with which a session begins. */
interface Begun extends Omit<Read, 'wanted'> {
  held: Held
  messages: readonly Message[]
  /** How many of the messages are never evicted. */
  kept: number
  usage: number
}

/** Scripts without types cannot make sessions either. */
const KEY = Symbol('LanguageModel')

type AnyChunk = string | LanguageModelAnswerContent

/**
 * A conversation with the model that `configure` has named: the Prompt API's `LanguageModel`. Prompts of one session
 * are answered in their order; sessions run side by side.
 *
 * Errors are the draft's: a `TypeError` for wrong arguments, else a `DOMException`, such as `NotSupportedError`,
 * `QuotaExceededError` with `requested` and `quota` in tokens, or `InvalidStateError` after `destroy()`. An aborted call
 * rejects with the signal's reason.
 */
export class LanguageModel extends EventTarget {
  #life: Life
  #read: Omit<Read, 'wanted'>
  #messages: Message[]
  #kept: number
  #usage: number
  /** Calls that have begun and not ended. */
  #running = 0
  /** The end of the last call. */
  #last: Promise<unknown> = Promise.resolve()
  #onContext = new Handler(this, 'contextoverflow')
  #onQuota = new Handler(this, 'quotaoverflow')

  private constructor(key: typeof KEY, begun: Begun, signal?: AbortSignal) {
    if (key !== KEY) throw new TypeError('Illegal constructor')
    super()
    this.#life = new Life(begun.held, signal)
    this.#read = { mode: begun.mode, inputs: begun.inputs, tools: begun.tools }
    this.#messages = [...begun.messages]
    this.#kept = begun.kept
    this.#usage = begun.usage
  }

  /** Whether a session with these options can be had, now or after a download. */
  static async availability(options: LanguageModelCreateCoreOptions = {}): Promise<Availability> {
    return availabilityOf(readOptions(options).wanted)
  }

  /**
   * Begins a session. The first one loads the model. Rejects with `NotSupportedError` if the model cannot run here or
   * cannot do what the options ask for, `NotAllowedError` if it must not be downloaded, `NetworkError` if it cannot
   * be, and `QuotaExceededError` if `initialPrompts` are too long.
   */
  static async create(options: LanguageModelCreateOptions = {}): Promise<LanguageModel> {
    const { wanted, ...read } = readOptions(options)
    const given = dictionary(options, 'options')
    const initial = given.initialPrompts === undefined ? [] : sequence(given.initialPrompts, 'initialPrompts')
    const messages = initial.length === 0 ? [] : messagesOf(initial, read.inputs, true)
    checkWhole(messages)
    return created(wanted, given, async (held, signal) => {
      // This finds tools that the package does not support.
      const usage = await count(held, messages, read.tools)
      const quota = held.model.info.contextLength
      // One token at least is an answer's.
      if (usage >= quota) throw tooLong(usage, quota)
      await prewarm(held, messages, read.tools, signal)
      return new LanguageModel(KEY, { ...read, held, messages, kept: messages.length, usage }, signal)
    })
  }

  /**
   * The answer to a prompt. It is a text, or an array of texts and calls if the model has called tools that the page runs:
   * sessions with such tools say so by the type parameter. With `prefix`, it is the rest of the answer.
   */
  prompt<Answer extends string | LanguageModelAnswerContent[] = string>(
    input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}
  ): Promise<Answer> {
    return this.#call(() => this.#ask(input, options), asked => this.#answer(asked, () => {})) as Promise<Answer>
  }

  /**
   * The answer as it comes, in parts to be joined: texts, or content of `type` and `value` in a session with tools that
   * the page runs. Throws for wrong arguments.
   */
  promptStreaming<Chunk extends string | LanguageModelAnswerContent = string>(
    input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}
  ): ReadableStream<Chunk> {
    const asked = this.#ask(input, options)
    return this.#life.stream<Chunk>(asked.signal, (signal, onChunk) =>
      this.#queued(signal, () => this.#answer({ ...asked, signal }, onChunk as (chunk: AnyChunk) => void)))
  }

  /** Adds messages to the conversation. The model reads them at once, so that the next answer comes sooner. */
  append(input: LanguageModelPrompt, options: SignalOptions = {}): Promise<void> {
    const read = () => {
      const asked = this.#ask(input, { signal: dictionary(options, 'options').signal })
      checkWhole(asked.messages)
      return asked
    }
    return this.#call(read, async ({ messages, signal }) => {
      const [all, isLess] = await this.#room(messages, signal)
      await prewarm(this.#life.held, all, this.#read.tools, signal)
      await this.#keep(all, isLess, signal)
    })
  }

  /** The tokens that a prompt takes, with the words that a model's template puts around it. */
  async measureContextUsage(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<number> {
    const given = dictionary(options, 'options')
    const constraint = constraintOf(given.responseConstraint, given.omitResponseConstraintInput)
    const messages = messagesOf(input, this.#read.inputs, true)
    const signal = this.#life.signal(given.signal)
    return unlessAborted(signal, () => this.#life.run(signal, async () =>
      measured(this.#life.held, await told(messages, constraint))))
  }

  /** The tokens of the conversation so far. */
  get contextUsage(): number {
    return this.#usage
  }

  /** The most tokens of a conversation. */
  get contextWindow(): number {
    return this.#life.held.model.info.contextLength
  }

  /** Called for each `contextoverflow`: the oldest messages were evicted. */
  get oncontextoverflow(): ((event: Event) => unknown) | null {
    return this.#onContext.value
  }

  set oncontextoverflow(listener: ((event: Event) => unknown) | null) {
    this.#onContext.value = listener
  }

  /** The older name of `measureContextUsage`. */
  measureInputUsage(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<number> {
    return this.measureContextUsage(input, options)
  }

  /** The older name of `contextUsage`. */
  get inputUsage(): number {
    return this.contextUsage
  }

  /** The older name of `contextWindow`. */
  get inputQuota(): number {
    return this.contextWindow
  }

  /** The older name of `oncontextoverflow`, with an event of its own. */
  get onquotaoverflow(): ((event: Event) => unknown) | null {
    return this.#onQuota.value
  }

  set onquotaoverflow(listener: ((event: Event) => unknown) | null) {
    this.#onQuota.value = listener
  }

  get samplingMode(): LanguageModelSamplingMode {
    return this.#read.mode ?? 'balanced'
  }

  /** A second session that begins with the same conversation. It does not have the calls that still run. */
  async clone(options: SignalOptions = {}): Promise<LanguageModel> {
    const signal = this.#life.signal(dictionary(options, 'options').signal)
    const begun = { ...this.#read, held: this.#life.held, messages: this.#messages, kept: this.#kept, usage: this.#usage }
    await unlessAborted(signal, task)
    return new LanguageModel(KEY, begun)
  }

  /** Ends the session: its calls reject with `InvalidStateError`, now and later. */
  destroy(): void {
    this.#life.end()
  }

  /** Reads the arguments of a call. */
  #ask(input: unknown, options: unknown): Asked {
    const given = dictionary(options, 'options')
    const constraint = constraintOf(given.responseConstraint, given.omitResponseConstraintInput)
    const signal = this.#life.signal(given.signal)
    const isFirst = this.#messages.length === 0 && this.#running === 0
    return { messages: messagesOf(input, this.#read.inputs, isFirst), constraint, signal }
  }

  /** Runs a call when those before it have ended. */
  async #call<T>(read: () => Asked, job: (asked: Asked) => Promise<T>): Promise<T> {
    const asked = read()
    const { signal } = asked
    return unlessAborted(signal, () => this.#life.run(signal, () => this.#queued(signal, () => job(asked))))
  }

  #queued<T>(signal: AbortSignal, job: () => Promise<T>): Promise<T> {
    this.#running += 1
    const result = this.#last.then(() => {
      signal.throwIfAborted()
      return job()
    })
    this.#last = result.catch(() => {}).then(() => { this.#running -= 1 })
    return result
  }

  /** Answers a prompt, and passes on what comes. The conversation changes only if all goes well. */
  async #answer({ messages: given, constraint, signal }: Asked, onChunk: (chunk: AnyChunk) => void): Promise<string | LanguageModelAnswerContent[]> {
    const { model, shared } = this.#life.held
    const messages = await told(given, constraint)
    const [all, isLess] = await this.#room(messages, signal)
    // There is nothing to answer.
    if (all.length === 0) return ''
    const begun = all.at(-1)?.prefix ? all.at(-1)! : undefined
    const { mode, tools } = this.#read
    const options: Omit<GenerateOptions, 'responseFormat' | 'tools' | 'toolChoice' | 'parallelToolCalls' | 'raw' | 'special'> = {
      ...SAMPLING.balanced,
      ...(model.info.thinking && { thinking: false }),
      ...shared.settings.answers,
      ...(mode && SAMPLING[mode]),
      signal
    }
    // There is no reasoning before an answer that is begun.
    if (begun) delete options.thinking
    // A model that answers in a format, or goes on with an answer, calls nothing.
    const usable = constraint || begun ? undefined : tools
    const isOpen = tools !== undefined && !tools.runnable
    let text = ''
    const read = async (answer: { tokens(): AsyncIterable<Token> }) => {
      for await (const { channel, text: part } of answer.tokens()) {
        if (channel !== 'answer' || part === '') continue
        text += part
        onChunk(isOpen ? { type: 'text', value: part } : part)
      }
    }
    if (usable?.runnable) {
      const reading: Promise<void>[] = []
      const onAnswer = (answer: { tokens(): AsyncIterable<Token> }) => {
        const one = read(answer)
        one.catch(() => {}) // The run rejects with the same error.
        reading.push(one)
      }
      const run = await model.runTools({ ...options, messages: all, tools: usable.runnable, onAnswer })
      await Promise.all(reading)
      await this.#keep(run.messages.filter(hasWords), isLess, signal)
      return text
    }
    const answer = model.generate(all, {
      ...options, ...(constraint && { responseFormat: constraint.format }), ...(usable && { tools: usable.described })
    })
    answer.stats.catch(() => {}) // The loop throws the same error.
    await read(answer)
    const { finishReason } = await answer.stats
    if (constraint && finishReason === 'length') {
      throw exception('SyntaxError', 'the answer was cut off before it had the format of `responseConstraint`')
    }
    const toolCalls = usable ? await answer.toolCalls() : []
    const said: Message = { role: 'assistant', content: (begun?.content ?? '') + text, ...(toolCalls.length > 0 && { toolCalls }) }
    await this.#keep([...begun ? all.slice(0, -1) : all, ...hasWords(said) ? [said] : []], isLess, signal)
    if (toolCalls.length === 0) return text
    const calls = toolCalls.map(({ id: callID, name, arguments: args }): LanguageModelAnswerContent =>
      ({ type: 'tool-call', value: new LanguageModelToolCall({ callID, name, arguments: args }) }))
    for (const call of calls) onChunk(call)
    return [...text === '' ? [] : [{ type: 'text' as const, value: text }], ...calls]
  }

  /** Makes messages the conversation. `isLess` says that turns were evicted. */
  async #keep(messages: readonly Message[], isLess: boolean, signal: AbortSignal): Promise<void> {
    const usage = await this.#count(messages, signal)
    signal.throwIfAborted()
    this.#messages = [...messages]
    this.#usage = usage
    // A first prompt may begin with the system's message, which is never evicted either.
    if (this.#kept === 0 && messages[0]?.role === 'system') this.#kept = 1
    if (!isLess) return
    this.dispatchEvent(new Event('contextoverflow'))
    this.dispatchEvent(new Event('quotaoverflow'))
  }

  /**
   * The conversation with further messages, and whether it is without the oldest turns: as many as have to be evicted to
   * leave room for an answer. Rejects with `QuotaExceededError` if there is no room for the messages themselves.
   */
  async #room(messages: readonly Message[], signal: AbortSignal): Promise<[all: Message[], isLess: boolean]> {
    const window = this.contextWindow
    const { length } = this.#messages
    const all = [...this.#messages, ...messages]
    const kept = all.slice(0, this.#kept)
    const { maxTokens } = this.#life.held.shared.settings.answers ?? {}
    // The model refuses a wrong `maxTokens`, so no turn is evicted because of it.
    const wanted = Math.min(Number.isInteger(maxTokens) ? maxTokens! : Infinity, window * ANSWER_SHARE)
    // A turn begins with the user. Results of tools stay with their calls, the beginning of an answer with its question.
    const isStart = ({ role, prefix }: Message, n: number) =>
      n < length ? role === 'user' : n === length && role !== 'tool' && !prefix
    const starts = all.flatMap((message, n) => n > kept.length && isStart(message, n) ? [n] : [])
    let left = all
    let tokens = await this.#count(all, signal)
    for (const start of starts) {
      if (tokens <= window - wanted) break
      left = [...kept, ...all.slice(start)]
      tokens = await this.#count(left, signal)
    }
    // One token at least is the answer's.
    if (tokens >= window) {
      const requested = await measured(this.#life.held, messages)
      throw tooLong(Math.max(requested, window + 1), window)
    }
    return [left, left !== all]
  }

  async #count(messages: readonly Message[], signal: AbortSignal): Promise<number> {
    signal.throwIfAborted()
    return count(this.#life.held, messages, this.#read.tools)
  }
}

/** A message that stands for another. */
const ANY: Message = { role: 'user', content: 'x' }

/** The tokens of a conversation and of the tools that the model may call. */
async function count({ model }: Held, messages: readonly Message[], tools?: Tools): Promise<number> {
  const options = tools ? { tools: tools.described } : {}
  const last = messages.at(-1)
  if (!last) return tools ? await model.countTokens([ANY], options) - await model.countTokens([ANY]) : 0
  // A template writes no end to calls alone.
  const said = last.role === 'assistant' && last.content.trim() === '' ? { ...last, content: 'x' } : last
  return model.countTokens([...messages.slice(0, -1), said], options)
}

/**
 * The tokens that messages take in a conversation. A model counts no results without their calls, and no beginning of an
 * answer by itself: others stand before them.
 */
async function measured(held: Held, messages: readonly Message[]): Promise<number> {
  const first = messages.findIndex(({ role }) => role !== 'tool')
  const results = first < 0 ? messages : messages.slice(0, first)
  const toolCalls = results.map(({ toolCallId }) => ({ id: toolCallId!, name: 'x', arguments: {} }))
  const before: Message[] = results.length > 0 ? [ANY, { role: 'assistant', content: 'x', toolCalls }]
    : messages[0]?.prefix ? [ANY] : []
  return await count(held, [...before, ...messages]) - await count(held, before)
}

/** Only a prompt can begin an answer. */
function checkWhole(messages: readonly Message[]): void {
  if (messages.at(-1)?.prefix) throw exception('SyntaxError', 'only `prompt` and `promptStreaming` take a `prefix`')
}

/** Lets the model read messages in advance. Some templates cannot write them without a question: then it reads them later. */
async function prewarm(
  { model }: Held, messages: readonly Message[], tools: Tools | undefined, signal: AbortSignal | undefined
): Promise<void> {
  if (messages.length === 0 || tools || messages.at(-1)!.prefix) return
  await model.prewarm(messages, signal ? { signal } : {}).catch(error => {
    if (error?.code !== 'bad-template') throw error
  })
}

function readOptions(options: unknown): Read {
  const given = dictionary(options, 'options')
  const inputs = readExpected(given.expectedInputs, 'expectedInputs')
  const outputs = readExpected(given.expectedOutputs, 'expectedOutputs')
  const tools = toolsOf(given.tools, outputs.types.has('tool-call'))
  const mode = given.samplingMode === undefined ? undefined : oneOf(given.samplingMode, MODES, 'samplingMode')
  const isSupported = [...inputs.types].every(type => INPUTS.includes(type)) && [...outputs.types].every(type => OUTPUTS.includes(type))
  const languages = [...inputs.languages, ...outputs.languages]
  return {
    wanted: { name: 'LanguageModel', ours: LanguageModel, options: given, isSupported, languages },
    mode, tools, inputs: inputs.types
  }
}
