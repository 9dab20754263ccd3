// For apps whose TypeScript library is older than `await using`:
/// <reference lib="esnext.disposable" preserve="true" />
import { abortOf, unlessAborted } from './abort.js'
import { isBrowser, NO_BROWSER } from './browser.js'
import type { ModelCache } from './cache.js'
import { Chat, DEFAULTS } from './chat.js'
import type { ChatModel } from './chat.js'
import { copies } from './said.js'
import { cache, persistOnce } from './stored.js'
import {
  badOption, checkBoolean, checkChoice, checkCount, checkLoad, checkMessages, checkOptions, checkSignal,
  checkText, report, signalOf
} from '../check.js'
import { copied, WorkerTransport } from '../protocol/worker-transport.js'
import { BitNetError, fetched } from '../error.js'
import { Generation } from '../generation.js'
import type { Start } from '../generation.js'
import { chatOf, fetchOf, responsesOf } from '../openai/interface.js'
import type { Responses } from '../openai/responses-types.js'
import type { ChatCompletions } from '../openai/types.js'
import { disposedError } from '../protocol/messages.js'
import type { PortableOptions, PortableRequest, Transport } from '../protocol/messages.js'
import { portable } from '../protocol/source.js'
import { version } from '../version.js'
import type {
  AbortOptions, Adapter, AppliedAdapter, Availability, AvailabilityOptions, ChatOptions, CountOptions, DecideOptions, Decision, Decisions, DecisionStats, DeviceLoss, EmbedOptions, GenerateOptions, InspectOptions, Inspection, Input, LoadOptions, Message, ModelInfo,
  Profile, ProfileOptions, Progress, Question, RunToolsOptions, Source, SummarizeOptions, TokenizeOptions, ToolRun
} from '../types.js'

/**
 * A loaded model.
 *
 * Generations run together. `logits` and `profile` wait for the calls before them. Every failure is
 * a `BitNetError` with a `code`. After `dispose()` every call rejects with `disposed`.
 */
export class BitNet {
  /** Facts about the model, and how it runs. */
  readonly info: ModelInfo
  /** OpenAI's way to chat: `model.chat.completions.create({ messages })`. */
  readonly chat: ChatCompletions = chatOf(this)
  /** OpenAI's newer way: `model.responses.create({ input })`. */
  readonly responses: Responses = responsesOf(this)
  /**
   * OpenAI's HTTP interface as a `fetch` that this model answers, for `new OpenAI({ fetch })`:
   * `/v1/chat/completions`, `/v1/responses`, `/v1/completions`, `/v1/embeddings` and `/v1/models`. Nothing is sent to
   * any network.
   * Failures are answers with a status. It rejects only if its signal aborts or if its arguments
   * are no request, as `fetch` does, and with `network` if its script cannot be fetched.
   */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response> =
    fetchOf(this)
  #transport: Transport
  #disposal = new AbortController()
  /** The end of the last call that needs the GPU to itself. */
  #last: Promise<unknown> = Promise.resolve()
  /** The end of all generations so far. */
  #generated: Promise<unknown> = Promise.resolve()

  /**
   * Resolves when no more of the model will be stored: all of it is stored; or it cannot be, as the
   * note `not-stored` says; or its thread has ended. If a page closes or disposes of the model
   * before, the bytes that were not stored yet may be lost. The next load downloads them.
   */
  readonly stored: Promise<void>

  /**
   * Resolves when the model answers no more calls, to the error with which they reject: `disposed`, or
   * `internal` if its thread has ended or its engine has crashed. Then load it again.
   */
  readonly ended: Promise<BitNetError>

  /**
   * A hash of the adapters that are applied, and of their scales; empty without any. Vectors of texts and saved chats
   * depend on it.
   */
  readonly adaptersHash: string = ''

  #lost!: Promise<DeviceLoss>
  #resolveLost!: (loss: DeviceLoss) => void

  private constructor(transport: Transport, info: ModelInfo, stored: Promise<void>, ended: Promise<BitNetError>) {
    this.#transport = transport
    this.info = info
    this.stored = stored
    this.ended = ended
    this.#awaitLoss()
    transport.onLost = loss => {
      const resolve = this.#resolveLost
      this.#awaitLoss()
      resolve(loss)
    }
  }

  /**
   * Finds out whether a model can run here, and with what, without loading a model. Where none can,
   * or if its script cannot be fetched, it says so. Rejects only with `bad-option`.
   */
  static async availability(options: AvailabilityOptions = {}): Promise<Availability> {
    const script = await fetched(() => import('./availability.js')).catch(error => error as BitNetError)
    return 'availability' in script ? script.availability(options) : unavailable(script.message)
  }

  /** The version of this package. */
  static readonly version: string = version

  /** The models stored on this device. */
  static readonly cache: ModelCache = cache

  /**
   * Loads a GGUF model.
   *
   * Rejects with the reason of `signal` if that aborts, else with a `BitNetError`: `bad-option`;
   * `no-webgpu`, `no-adapter`, `missing-feature` or `out-of-memory` if it cannot run here; `http`,
   * `network`, `io`, `not-cached`, `storage` or `storage-full` if the bytes cannot be had;
   * `integrity`, `bad-gguf`, `unsupported-model`, `missing-tensor`, `tensor-shape` or `bad-template`
   * if they are not a model that can run.
   */
  static async load(source: Source, options: LoadOptions = {}): Promise<BitNet> {
    checkOptions(options)
    const { signal, onProgress, worker = true, crossOriginStorage = 'read', adapters, ...rest } = options
    checkLoad(signal, onProgress, worker)
    checkChoice('crossOriginStorage', crossOriginStorage, ['read', 'offer', 'off'])
    const from = portable(source)
    if (!isBrowser()) throw new BitNetError('no-webgpu', NO_BROWSER)
    const aborted = abortOf(signal, source instanceof Request ? source.signal : undefined)
    aborted.signal.throwIfAborted()
    const apply = adapters && (await fetched(() => import('./adapters.js'))).applying(adapters)
    const opening = open(worker)
    let transport: Transport | undefined
    let ended = false
    try {
      transport = await Promise.race([opening, aborted.promise])
      let finish = () => {}
      const stored = new Promise<void>(resolve => { finish = resolve })
      let isStoring = false
      const tell = (progress: Progress) => {
        isStoring = progress.phase === 'storing'
        report(onProgress, progress)
      }
      const ending = transport
      const end = new Promise<BitNetError>(resolve => {
        ending.onEnd = why => {
          finish()
          resolve(why)
        }
      })
      transport.onStoring = progress => {
        tell(progress)
        if (!isStoring) finish()
      }
      // The transport may still report while an aborted load ends. The caller gets no more reports.
      const onItem = (progress: Progress) => { if (!ended) tell(progress) }
      const how = { onItem, signal: aborted.signal }
      const alone = () => ending.load(from, rest, how)
      const looks = rest.integrity !== undefined && crossOriginStorage !== 'off' &&
        'crossOriginStorage' in (globalThis.navigator ?? {})
      // If the script that looks there cannot be fetched, the model comes from elsewhere.
      const loading = looks
        ? import('../shared/load.js').then(
          ({ load }) => load(ending, from, rest, how, crossOriginStorage === 'offer', stored), alone
        )
        : alone()
      const model = new BitNet(transport, await Promise.race([loading, aborted.promise]), stored, end)
      if (!isStoring) finish()
      // Only what has an address is stored.
      const { request } = from as Partial<{ request: PortableRequest }>
      if (rest.cache !== 'off' && /^https?:/.test(request?.url ?? from as string)) void persistOnce()
      await Promise.race([apply?.(model, aborted.signal), aborted.promise])
      return model
    } catch (error) {
      // The load may be aborted while the worker is still starting.
      opening.then(transport => transport.close(disposedError()), () => {})
      throw error
    } finally {
      ended = true
      aborted.release()
    }
  }

  /**
   * Resolves at the next loss of the GPU: its driver was reset, or the browser took it away.
   * Running calls then reject with `device-lost`. You need do nothing. The next call, or a waiting
   * one, restores the model on a new device and continues. Read `lost` again for the loss after
   * that.
   */
  get lost(): Promise<DeviceLoss> {
    return this.#lost
  }

  /**
   * Generates an answer to a user's message, a conversation, or tokens. Calls that run at the same
   * time decode as a batch, up to `info.maxBatch` of them: each step reads the weights once for
   * all. Each gets the text that it would get alone. Calls that find no room wait, in order.
   *
   * Throws `bad-option` for options that are no object. Any other failure rejects the readers of
   * the answer: `bad-option` for a wrong input or option, `bad-template`, `context-full`,
   * `device-lost`.
   */
  generate(input: Input, options: GenerateOptions = {}): Generation {
    checkOptions(options)
    const { signal, ...rest } = options
    checkSignal(signal)
    const last = (input as readonly Message[])?.at?.(-1)
    return new Generation(this.#run(() => input, rest), signal, () => last?.prefix ? last.content : '')
  }

  /**
   * Summarises a text of any length. A text that does not fit into the context is split into
   * passages at the ends of sentences. The passages are summarised as a batch, and then their
   * summaries are summarised. Each prompt is one `generate`, so that other calls may run between
   * them.
   *
   * Throws `bad-option` for options that are no object. Any other failure rejects the readers of
   * the summary: `bad-option` for a text that is no string or empty, and for a wrong option;
   * `context-full` if too little of the context is left for the text; and the failures of
   * `generate`.
   */
  summarize(text: string, options: SummarizeOptions = {}): Generation {
    checkOptions(options)
    const { signal, ...rest } = options
    checkSignal(signal)
    const run: Start = async (onToken, stop) =>
      (await fetched(() => import('./summarize.js'))).summarize(this, text, rest, onToken, stop)
    return new Generation(run, signal)
  }

  /**
   * Generates an answer to each of `inputs`, as a batch: see `generate`. All have the same options.
   *
   * Throws `bad-option` for inputs that are no array and for options that are no object. Any other
   * failure rejects the readers of that answer.
   */
  generateMany(inputs: readonly Input[], options: GenerateOptions = {}): Generation[] {
    if (!Array.isArray(inputs)) throw badOption('inputs', 'must be an array')
    return inputs.map((input: Input) => this.generate(input, options))
  }

  /**
   * Lets the model call tools, runs them, and gives it their results, until it answers without a call.
   *
   * Rejects with `bad-option` for wrong options, `incomplete` if a call is cut off, with what `onError`
   * throws, with the reason of `signal`, and as `generate` does.
   */
  async runTools(options: RunToolsOptions): Promise<ToolRun> {
    return (await fetched(() => import('./tools.js'))).runTools(this, options)
  }

  /**
   * Computes the beginning of conversations in advance, such as a long system prompt. The next call
   * that begins with `messages` computes only its new tokens, as long as the KV cache keeps them.
   * With `deterministic` it also computes the end of `messages` again, up to 127 tokens.
   *
   * Rejects as `generate` does, and with the reason of `signal`.
   */
  async prewarm(messages: readonly Message[], options: AbortOptions = {}): Promise<void> {
    checkMessages(messages)
    const signal = signalOf(options)
    // An answer has at least one token. The whole prompt is computed for it.
    const run = this.#run(() => messages, { maxTokens: 1 })
    await unlessAborted(signal, () => run(() => {}, signal ?? new AbortController().signal))
  }

  /**
   * Begins a conversation. Throws `bad-option` for wrong options. The values of those that are kept
   * for its turns are checked in the first turn.
   */
  createChat(options: ChatOptions = {}): Chat {
    checkOptions(options, ['system', 'messages', 'overflow', ...DEFAULTS])
    const { system, messages = [], overflow = 'error', ...defaults } = options
    checkChoice('overflow', overflow, ['error', 'slide'])
    if (system !== undefined) checkText('system', system)
    checkMessages(messages)
    const before = copies(messages)
    if (system !== undefined) before.unshift({ role: 'system', content: system })
    return new Chat(this.#chatModel(), before, overflow, defaults)
  }

  /**
   * A chat that `chat.save()` has saved, with its keys and values. Its next turn computes only its
   * new tokens. The model must be the same, and loaded on the same back end with the same `kv`, `activations`,
   * `i2sLayout` and `deterministic`, with a `context` that takes the same factors of RoPE, and with the same adapters applied.
   *
   * Rejects with `bad-option` for the chat of another model, and if the bytes differ from those
   * that were saved. A hash of all bytes is saved with them. It finds damage, but no forgery. So
   * restore only chats that you have kept yourself. Forged bytes with a matching hash can make the
   * model say anything, but they do no more harm than any prompt. Also rejects with `io` if the
   * blob cannot be read, and with `device-lost`.
   */
  async restoreChat(saved: Blob, options: AbortOptions = {}): Promise<Chat> {
    if (!(saved instanceof Blob)) throw badOption('chat', 'must be a Blob')
    const signal = signalOf(options)
    const note = await this.#queue(() => this.#transport.call('restoreChat', [saved]), signal)
    const { readNote } = await fetched(() => import('./note.js'))
    return Chat.restored(this.#chatModel(), readNote(note))
  }

  /**
   * The tokens of a text, without a begin-of-text token. Rejects with `bad-option` if it is no
   * string.
   */
  async tokenize(text: string, options: TokenizeOptions = {}): Promise<Uint32Array> {
    checkOptions(options, ['special', 'signal'])
    const { special = false, signal } = options
    checkBoolean('special', special)
    checkSignal(signal)
    return unlessAborted(signal, () => this.#transport.call('tokenize', [text, special]))
  }

  /** The text of tokens. Rejects with `bad-option` if one is not in the vocabulary. */
  detokenize(ids: Uint32Array): Promise<string> {
    return this.#transport.call('detokenize', [ids])
  }

  /**
   * The number of tokens of a text, or of a conversation in the model's chat template with `tools`. One that waits
   * for an answer is counted with the answer's beginning, as the template writes it; one that ends with an answer
   * as it is.
   * Rejects with `bad-option` for a wrong input and wrong tools.
   */
  async countTokens(input: string | readonly Message[], options: CountOptions = {}): Promise<number> {
    return this.#transport.call('countTokens', [input, await posted(options)])
  }

  /**
   * The logits after the last of `ids`: one for each token of the vocabulary. Rejects with
   * `bad-option` if there are no ids or one is not in the vocabulary, with `context-full` if there
   * are too many.
   */
  async logits(ids: Uint32Array, options: AbortOptions = {}): Promise<Float32Array> {
    return this.#queue(() => this.#transport.call('logits', [ids]), signalOf(options))
  }

  /**
   * Decides a question about a text, or several. The model is asked by its chat template if it has
   * one, without reasoning. Instead of an answer, the probability of each option is computed: the
   * text once, then each question, then the options, several tokens in a pass.
   *
   * Rejects with `bad-option` for a wrong text, question or option, `context-full` if they are too
   * long, `bad-template`, `device-lost`, and with the reason of `signal`.
   */
  decide(text: string, options: DecideOptions & Question): Promise<Decision & { stats: DecisionStats }>
  decide(text: string, options: DecideOptions & { questions: readonly Question[] }): Promise<Decisions>
  decide(text: string, options: DecideOptions): Promise<Partial<Decision & Decisions>> {
    return this.#steps(() => import('./decide.js'), text, options)
  }

  /**
   * The vectors of texts: texts with a like meaning have like vectors, so their scalar product says how alike
   * they are. A text is a string, in which nothing becomes a special token, or its ids, which are taken as they
   * are. Each vector has `info.dimensions` values and the length 1. Many texts share a pass of the model, and a
   * text has the same vector alone and among others, but for rounding.
   *
   * Any model can embed. One that was not made for it needs `pooling`. Compare only vectors that were made by the
   * same model with the same pooling and dimensions.
   *
   * Rejects with `bad-option` for wrong texts and options, and without a pooling; `context-full` for a text that is
   * too long; `device-lost`; and with the reason of `signal`. The error of a text names it, as in `texts[300]`. It may
   * come after others were computed: then their vectors are lost.
   */
  embed(texts: readonly (string | Uint32Array)[], options?: EmbedOptions): Promise<Float32Array[]> {
    return this.#steps(() => import('./embed.js'), texts, options)
  }

  /**
   * Reads what the model computes for a prompt, for people who look into it: its tokens, how likely each was and what else could
   * have come, the values in its layers, the attention of a head. `options.what` says what is read. A string is taken as it
   * is, after a begin-of-text token if the model has one; messages are put into the chat template. It takes much longer
   * than a prompt, and calls that are made meanwhile wait.
   *
   * Rejects with `bad-option` for a wrong input or option, and for the attention of more than 2048 tokens; `context-full`;
   * `embedding-model` for the candidates of a model that does not answer; `device-lost`; and with the reason of `signal`.
   */
  inspect(input: Input, options?: InspectOptions): Promise<Inspection> {
    return this.#steps(() => import('./inspect.js'), input, options)
  }

  /**
   * Loads an adapter (LoRA, in GGUF) for this model. `setAdapters` applies it. It is not stored on the device.
   *
   * Rejects with `bad-adapter` if it cannot be applied to this model, `bad-gguf` if it is damaged, `http`, `network`
   * or `io` if its bytes cannot be had, and with the reason of `signal`.
   */
  async loadAdapter(source: Source, options: AbortOptions = {}): Promise<Adapter> {
    const signal = signalOf(options)
    return (await fetched(() => import('./adapters.js'))).loadAdapter(this.#transport, (job, signal) => this.#queue(job, signal), source, signal)
  }

  /**
   * Applies these adapters, each times its scale, and no others, to the calls after this one. Without any, the model
   * computes as it did before the first, to the last bit. The contents of the KV cache are computed again. A saved
   * chat is restored only with the same adapters and scales.
   *
   * Rejects with `bad-option` for wrong values and adapters of other models; with `bad-adapter` for one that the GPU
   * cannot apply, `out-of-memory` and `device-lost`, after which none is applied; and with the reason of `signal`.
   */
  async setAdapters(adapters: readonly AppliedAdapter[], options: AbortOptions = {}): Promise<void> {
    // Calls that are made later wait for it.
    return this.#queue(async () => {
      const { setAdapters } = await fetched(() => import('./adapters.js'))
      await setAdapters(this.#transport, adapters, this as { adaptersHash: string })
    }, signalOf(options))
  }

  /**
   * Measures the time of each kernel in one step of `tokens` after `position` tokens, by the GPU's
   * own clock; on the CPU, that of the layers and of the LM head. 1 token (default) is a step of an answer.
   * More tokens are a chunk of a prompt, at most as many as are computed at once. `position` is 0 by default. `options` say how the step
   * chooses its token, which is greedily by default.
   *
   * Rejects with `bad-option` for numbers outside the context and for wrong options, with
   * `missing-feature` if the GPU has no such clock, and with `out-of-memory` if it has no room to measure its memory's speed. The next generation computes its whole prompt, after that rejection too.
   */
  async profile(position = 0, tokens = 1, options: ProfileOptions = {}): Promise<Profile> {
    checkCount('position', position)
    checkCount('tokens', tokens)
    checkOptions(options)
    return this.#queue(() => this.#transport.call('profile', [position, tokens, options]))
  }

  /**
   * Frees the GPU's memory, and ends the worker unless it is the caller's. Calls that run, wait or
   * are made later reject with `disposed`.
   */
  async dispose(): Promise<void> {
    this.#disposal.abort(disposedError())
    this.#transport.close(disposedError())
  }

  /** `dispose()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  #awaitLoss(): void {
    this.#lost = new Promise(resolve => { this.#resolveLost = resolve })
  }

  #chatModel(): ChatModel {
    return {
      start: (input, options) => this.#run(input, options),
      count: (messages, options) => this.countTokens(messages, options),
      save: (messages, note, signal) =>
        this.#queue(() => this.#transport.call('saveChat', [messages, note]), signal),
      contextLength: this.info.contextLength
    }
  }

  #run(input: () => Input | Promise<Input>, options: GenerateOptions): Start {
    return (onItem, signal) => this.#share(async () => {
      const portable = await posted(options)
      return this.#transport.call('generate', [await input(), portable], { onItem, signal })
    })
  }

  /** Runs a job as soon as no queued job runs. Other shared jobs may run at the same time. */
  #share<T>(job: () => Promise<T>): Promise<T> {
    const result = this.#after(this.#last, job)
    this.#generated = Promise.allSettled([this.#generated, result]).then(() => {})
    return result
  }

  /**
   * Runs a job when all jobs before it have ended. Later jobs wait for it. If `signal` aborts
   * before that, the job does not run. If it aborts later, the job goes on to its end, and its
   * result is dropped.
   */
  #queue<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return unlessAborted(signal, () => {
      const result = this.#after(Promise.all([this.#last, this.#generated]), () => {
        signal?.throwIfAborted()
        return job()
      })
      this.#last = result.catch(() => {})
      return result
    })
  }

  /** Queues each step of a script. The script gets copies, so that the caller may change its own values at once. */
  async #steps<I, O extends StepsOptions, T>(
    script: () => Promise<Script<I, O, T>>, input: I, options: O = {} as O
  ): Promise<T> {
    checkOptions(options)
    const { signal, onProgress, ...rest } = options
    checkSignal(signal)
    const args = copied([input, rest] as const)
    let steps: Steps<T> | undefined
    for (;;) {
      const { done, value } = await this.#queue(async () => {
        steps ??= (await fetched(script)).steps(this.#transport, ...args, onProgress, signal)
        return steps.next()
      }, signal)
      if (done) return value
    }
  }

  #after<T>(before: Promise<unknown>, job: () => Promise<T>): Promise<T> {
    return before.then(() => {
      this.#disposal.signal.throwIfAborted()
      return job()
    })
  }
}

/** The steps of a call, between which others may run, and its result. */
type Steps<T> = AsyncGenerator<void, T, void>

interface StepsOptions extends AbortOptions {
  onProgress?: unknown
}

/** A script of a call in steps. */
interface Script<I, O extends StepsOptions, T> {
  steps(
    transport: Transport, input: I, options: Omit<O, keyof StepsOptions>, onProgress: O['onProgress'], signal?: AbortSignal
  ): Steps<T>
}

/** Options in a form that can be posted. */
async function posted(options: GenerateOptions): Promise<PortableOptions> {
  checkOptions(options)
  return options.responseFormat === undefined && options.tools === undefined
    ? options as PortableOptions
    : (await fetched(() => import('./format.js'))).portableOptions(options)
}

/** Nothing is known, because of `reason`. */
function unavailable(reason: string): Availability {
  const lacking = { available: false, reason }
  return { ...lacking, backends: { webgpu: lacking, cpu: lacking }, features: [], limits: {}, software: false }
}

async function open(worker: boolean | Worker): Promise<Transport> {
  if (worker !== false) return WorkerTransport.open(worker === true ? undefined : worker)
  return new (await fetched(() => import('../protocol/local-transport.js'))).LocalTransport()
}
