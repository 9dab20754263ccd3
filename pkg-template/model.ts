// For apps whose own library of types is older than `await using`:
/// <reference lib="esnext.disposable" preserve="true" />
// A loaded model, wherever it runs.
import { availability } from './availability.js'
import { cache, persistOnce } from './cache.js'
import { Chat } from './chat.js'
import { checkLoad, checkSignal } from './check.js'
import { WorkerTransport } from './client.js'
import { BitNetError } from './error.js'
import { Generation } from './generation.js'
import type { Run } from './generation.js'
import type { PortableSource, Transport } from './protocol.js'
import { portable } from './source.js'
import type { Availability, DeviceLoss, GenerateOptions, Input, LoadOptions, Message, ModelInfo, Profile, Progress, Source, Stats, Token } from './types.js'

const disposed = (): BitNetError => new BitNetError('disposed', 'the model was disposed of')

export class BitNet {
  /** What the model is and how it runs. */
  readonly info: ModelInfo
  #transport: Transport
  #disposal = new AbortController()
  /** The end of the last call that needs the GPU: they run one after the other, in order. */
  #last: Promise<unknown> = Promise.resolve()

  #lost!: Promise<DeviceLoss>
  #tellLost!: (loss: DeviceLoss) => void

  private constructor(transport: Transport, info: ModelInfo) {
    this.#transport = transport
    this.info = info
    this.#awaitLoss()
    transport.onLost = loss => {
      const tell = this.#tellLost
      this.#awaitLoss()
      tell(loss)
    }
  }

  /** Whether this browser can run a model; loads nothing. */
  static availability(): Promise<Availability> {
    return availability()
  }

  /** Models stored on this device. */
  static readonly cache = cache

  /** Loads a GGUF model. */
  static async load(source: Source, options: LoadOptions = {}): Promise<BitNet> {
    const { signal, onProgress, worker = true, ...rest } = options
    checkLoad(signal, onProgress, worker)
    const from = portable(source)
    const aborted = abortOf(signal, source instanceof Request ? source.signal : undefined)
    aborted.signal.throwIfAborted()
    const opening = open(worker)
    let transport: Transport | undefined
    let ended = false
    try {
      transport = await Promise.race([opening, aborted.promise])
      // What is still under way when the load has ended is told to nobody.
      const onPiece = (piece: unknown) => { if (!ended) report(onProgress, piece as Progress) }
      const loading = transport.call('load', [from, rest], { onPiece, signal: aborted.signal })
      const model = new BitNet(transport, await Promise.race([loading, aborted.promise]))
      if (isStored(from, rest)) void persistOnce()
      return model
    } catch (error) {
      // Also a worker that was still starting when the load was aborted.
      opening.then(transport => transport.close(disposed()), () => {})
      throw error
    } finally {
      ended = true
      aborted.release()
    }
  }

  /**
   * Resolves when the GPU is lost next: reset by its driver, or taken away by the browser. What runs
   * then rejects with `device-lost`; the call after it, and calls that wait, bring the model back on
   * a new device and go on where it was, without your help. Read it again for the loss after.
   */
  get lost(): Promise<DeviceLoss> {
    return this.#lost
  }

  /** Generates from a user's turn, a conversation, or tokens. A second call waits for the first. */
  generate(input: Input, options: GenerateOptions = {}): Generation {
    const { signal, ...rest } = options
    checkSignal(signal)
    return new Generation(this.#run(() => input, rest), signal)
  }

  /** Begins a conversation. */
  createChat({ system, messages = [] }: { system?: string, messages?: readonly Message[] } = {}): Chat {
    const before: Message[] = system === undefined ? [] : [{ role: 'system', content: system }]
    return new Chat((input, options) => this.#run(input, options), [...before, ...messages.map(message => ({ ...message }))])
  }

  /** The tokens of a text, without a begin-of-text token; `special` recognises special tokens. */
  tokenize(text: string, { special = false }: { special?: boolean } = {}): Promise<Uint32Array> {
    return this.#transport.call('tokenize', [text, special])
  }

  /** The text of tokens. */
  detokenize(ids: Uint32Array): Promise<string> {
    return this.#transport.call('detokenize', [ids])
  }

  /** The tokens of a text, or of a conversation with the model's template around it. */
  countTokens(input: string | readonly Message[]): Promise<number> {
    return this.#transport.call('countTokens', [input])
  }

  /** The logits after the last of `ids`, one for each token of the vocabulary. */
  logits(ids: Uint32Array): Promise<Float32Array> {
    return this.#queue(() => this.#transport.call('logits', [ids]))
  }

  /**
   * The time of each kernel in one step of `tokens` after `position` tokens, by the GPU's own clock: 1
   * token is a step of an answer, more are a piece of a prompt (as much as is computed at once). Rejects
   * with `missing-feature` where the GPU has no such clock. The next generation computes its whole prompt.
   */
  profile(position = 0, tokens = 1): Promise<Profile> {
    return this.#queue(() => this.#transport.call('profile', [position, tokens]))
  }

  /** Frees the GPU's memory and the worker. Calls that run, wait or come later reject with `disposed`. */
  async dispose(): Promise<void> {
    this.#disposal.abort(disposed())
    this.#transport.close(disposed())
  }

  /** `await using`, where the browser knows it. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  #awaitLoss(): void {
    this.#lost = new Promise(resolve => { this.#tellLost = resolve })
  }

  #run(input: () => Input, options: GenerateOptions): Run {
    return (onToken, signal) => this.#queue(async () => {
      if (signal.aborted) return neverStarted
      return this.#transport.call('generate', [input(), options], { onPiece: piece => onToken(piece as Token), signal })
    })
  }

  #queue<T>(job: () => Promise<T>): Promise<T> {
    const result = this.#last.then(() => {
      this.#disposal.signal.throwIfAborted()
      return job()
    })
    this.#last = result.catch(() => {})
    return result
  }
}

/** The statistics of a generation that was stopped while it waited. */
const neverStarted: Stats = {
  promptTokens: 0,
  reusedTokens: 0,
  completionTokens: 0,
  draftedTokens: 0,
  acceptedTokens: 0,
  draftPasses: 0,
  unusedTokens: 0,
  timeToFirstToken: 0,
  prefillTokensPerSecond: 0,
  decodeTokensPerSecond: 0,
  finishReason: 'abort'
}

/** Whether a model has come from an address that is worth storing. */
function isStored(source: PortableSource, { cache = 'use' }: LoadOptions): boolean {
  const url = typeof source === 'string' ? source : 'request' in source ? source.request.url : ''
  return cache !== 'off' && /^https?:/.test(url)
}

async function open(worker: boolean | Worker): Promise<Transport> {
  if (worker !== false) return WorkerTransport.open(worker === true ? undefined : worker)
  const { Engine } = await import('./engine.js')
  return new Engine()
}

/** One signal of several, and a promise that rejects with its reason. */
function abortOf(...signals: (AbortSignal | undefined)[]) {
  const controller = new AbortController()
  const { signal } = controller
  const listeners = signals.filter(one => one !== undefined).map(one => {
    const abort = () => controller.abort(one.reason)
    if (one.aborted) abort()
    one.addEventListener('abort', abort)
    return () => one.removeEventListener('abort', abort)
  })
  const promise = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  promise.catch(() => {})
  return { signal, promise, release: () => listeners.forEach(release => release()) }
}

/** A callback that throws is the page's bug, and no reason to stop loading. */
function report(onProgress: LoadOptions['onProgress'], progress: Progress): void {
  try {
    onProgress?.(progress)
  } catch (error) {
    reportError(error)
  }
}
