// A model in this thread. Calls go by name to the compiled crate. A worker runs one of these too.
import { internalError } from './messages.js'
import { BitNetError } from '../error.js'
import { platform } from '../platform.js'
import type {
  Methods, ModelMethod, PortableRequest, PortableSource, Streaming, Transport
} from './messages.js'
import type { DeviceLoss, ModelInfo, Progress, Source, Token } from '../types.js'
import type { CallPart, WasmModel } from '../tritloom.js'
import { chosen } from '../cpu/choose.js'
import { formatsOf, hasFormats } from '../crate/formats.js'
import type { Held } from '../crate/formats.js'
import { ready, watch } from '../crate/wasm.js'
import { newId } from '../ids.js'

type Implementation<M extends ModelMethod> = (
  model: WasmModel, args: Methods[M]['args'], streaming: Streaming<M>
) => Methods[M]['result'] | Promise<Methods[M]['result']>

export class LocalTransport implements Transport {
  onStoring: ((progress: Progress) => void) | undefined
  onEnd: ((why: BitNetError) => void) | undefined
  onLost: ((loss: DeviceLoss) => void) | undefined
  #model: WasmModel | undefined
  /**
   * The reason why calls are not answered any more: the model was freed, or the crate has crashed.
   */
  #closed: BitNetError | undefined
  /** Rejects each running call. One shared promise would keep alive the results of all calls. */
  #running = new Set<(why: BitNetError) => void>()
  #end = (why: BitNetError) => {
    this.#closed ??= why
    for (const reject of this.#running) reject(this.#closed)
    this.onEnd?.(this.#closed)
  }
  #unwatch = watch(this.#end)

  load(
    source: PortableSource, { backend, ...options }: Methods['load']['args'][1],
    { onItem, signal }: Streaming<'load'>
  ): Promise<ModelInfo> {
    return this.#run(async () => {
      const { threads, strict, gpu } = options
      let how = await chosen({ backend, threads, strict, gpu })
      const onLost = (loss: DeviceLoss) => this.onLost?.(loss)
      let isLoaded = false
      // The page is called when the crate has returned. Otherwise an error of the page would have
      // the crate in its stack, and would count as a crash.
      const onProgress = (progress: Progress) => {
        const report = isLoaded ? this.onStoring : onItem
        if (how.why !== undefined) progress.notes.unshift({ kind: 'cpu', why: how.why })
        queueMicrotask(() => report?.(progress))
      }
      let model: WasmModel | undefined
      while (!model) {
        try {
          await ready(how.crate)
          if (this.#closed) throw this.#closed
          const { WasmModel } = how.crate
          const from = await received(source, WasmModel, options.integrity !== undefined)
          model = await WasmModel.load(from, options, onProgress, onLost, signal)
        } catch (error) {
          const instead = error instanceof BitNetError ? await how.instead?.(error) : undefined
          if (!instead) throw error
          how = instead
        }
      }
      isLoaded = true
      if (this.#closed) model.dispose()
      else this.#model = model
      const info = model.info()
      info.notes.unshift(...how.notes)
      return info
    })
  }

  call<M extends ModelMethod>(
    method: M, args: Methods[M]['args'], streaming: Streaming<M> = {}
  ): Promise<Methods[M]['result']> {
    return this.#run(() => {
      if (!this.#model) throw internalError('no model is loaded')
      return implementations[method](this.#model, args, streaming)
    })
  }

  close(why: BitNetError): void {
    this.#end(why)
    this.#unwatch()
    this.#model?.dispose()
    this.#model = undefined
  }

  /** Runs a call until it ends, the model is freed or the crate crashes. */
  async #run<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#closed) throw this.#closed
    let end!: (why: BitNetError) => void
    const ended = new Promise<never>((_, reject) => { end = reject })
    this.#running.add(end)
    try {
      return await Promise.race([work(), ended])
    } finally {
      this.#running.delete(end)
    }
  }
}

/** The source of a call that has arrived, for the crate. A model on a disk may be in several files. */
async function received(
  source: PortableSource, { volumes }: typeof WasmModel, compared: boolean
): Promise<Exclude<Source, URL> | Blob[]> {
  if (isRequest(source)) return new Request(source.request.url, source.request.init)
  const { file } = platform
  if (!file || typeof source !== 'string' || !source.startsWith('file:')) return source
  const urls = volumes(source, compared)
  return urls.length > 0 ? Promise.all(urls.map(file)) : file(source)
}

const isRequest = (source: PortableSource): source is { request: PortableRequest } =>
  typeof source === 'object' && source !== null && 'request' in source

/** The fields that the option `logprobs` adds to a token. */
type Logprobs = Pick<Token, 'logprob' | 'bytes' | 'top'>

/** The part of an answer that a text belongs to. The crate says true for the answer, false for the reasoning, or describes the call. */
const meaningOf = (meaning: boolean | CallPart): Pick<Token, 'channel' | 'call'> => {
  if (typeof meaning === 'boolean') return { channel: meaning ? 'answer' : 'reasoning' }
  const { index, name, ends } = meaning
  return { channel: 'call', call: { index, ...(name && { id: newId('call_', 24), name }), ...(ends && { ends }) } }
}

/** As with the progress of a load, the page is called when the crate has returned. */
const later = <T>(onItem: ((item: T) => void) | undefined) =>
  (item: T) => queueMicrotask(() => onItem?.(item))

const implementations: { [M in ModelMethod]: Implementation<M> } = {
  generate: async (model, [input, { responseFormat, ...options }], { onItem, signal }) => {
    const onToken = (
      id: number | undefined, text: string, meaning: boolean | CallPart, logprobs?: Logprobs
    ) => {
      const said = { text, ...meaningOf(meaning) }
      onItem?.(id === undefined ? said : { id, ...said, ...logprobs })
    }
    const calls = options.tools && model.callFormat(options)
    const format = calls === undefined ? responseFormat : { kind: 'calls' as const, text: calls }
    if (!format) return model.generate(input, options, onToken, signal)
    const called = performance.now()
    const stop = new AbortController()
    // The first answer in a format waits for its module. The prompt is computed meanwhile: the answer
    // then finds all but its last token in the KV cache.
    const begun = hasFormats(model) ? undefined : model.generate(
      input, { ...options, maxTokens: 1 }, () => {}, AbortSignal.any(signal ? [signal, stop.signal] : [stop.signal])
    )
    // If the format is refused, that is the error.
    begun?.catch(() => {})
    let held: Held | undefined
    try {
      // Without a format, a call that was aborted meanwhile ends before it begins.
      held = (await unlessAborted(formatsOf(model), signal))?.hold(format)
      const before = await begun
      const waited = performance.now() - called
      const stats = await model.generate(input, options, onToken, signal, held?.grammar)
      if (!before) return stats
      const { reusedTokens, prefillTokensPerSecond } = before
      const timeToFirstToken = stats.timeToFirstToken && waited + stats.timeToFirstToken
      return { ...stats, reusedTokens, prefillTokensPerSecond, timeToFirstToken }
    } finally {
      stop.abort()
      held?.release()
    }
  },
  tokenize: (model, [text, special]) => model.tokenize(text, special),
  detokenize: (model, [ids]) => model.detokenize(ids),
  countTokens: (model, [input, options]) => model.countTokens(input, options),
  logits: (model, [ids]) => model.logits(ids),
  decide: (model, [text, options], { signal }) => model.decide(text, options, signal),
  embed: (model, [texts, options], { onItem, signal }) =>
    model.embed(texts, options, later(onItem), signal),
  inspect: (model, [input, options], { onItem, signal }) =>
    model.inspect(input, options, later(onItem), signal),
  loadAdapter: (model, [file]) => model.loadAdapter(file),
  setAdapters: (model, [adapters]) => model.setAdapters(adapters),
  freeAdapter: (model, [id]) => { model.freeAdapter(id) },
  saveChat: (model, [messages, note]) => model.saveChat(messages, note),
  restoreChat: (model, [saved]) => model.restoreChat(saved),
  profile: (model, [position, tokens, options]) => model.profile(position, tokens, options)
}

/** The result of `work`; undefined if `signal` aborts first. */
async function unlessAborted<T>(
  work: Promise<T>, signal: AbortSignal | undefined
): Promise<T | undefined> {
  let abort = () => {}
  const aborted = new Promise<undefined>(resolve => { abort = () => resolve(undefined) })
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
