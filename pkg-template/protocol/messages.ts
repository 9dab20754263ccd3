// The messages between a page and its worker.
//
// The page sends a `call`, and `cancel` to end it early. The worker answers with any number of
// `item`s and then with one `result` or `error`. The first call is `hello`. `hello` and its answer
// keep their shape for ever, so that a page and a worker of two releases can tell each other apart.
import type { Format } from '../crate/formats.js'
import type { AdapterFacts, Embedded } from '../tritloom.js'
import { BitNetError } from '../error.js'
import type {
  DecideOptions, Decisions, DeviceLoss, EmbedOptions, ErrorCode, GenerateOptions, Input, InspectOptions, Inspection, LoadOptions, Message, ModelInfo, Profile,
  ProfileOptions, Progress, Source, Stats, Token, Tool
} from '../types.js'

/** Raise this with every change to the messages: a page must not talk to an older worker. */
export const VERSION = 19

/** Options that the page handles itself; the model never sees them. */
type PageOptions = 'signal' | 'onProgress' | 'worker' | 'crossOriginStorage' | 'adapters'

/** The options of `generate` in a form that can be posted to a worker. */
export type PortableOptions =
  Omit<GenerateOptions, PageOptions | 'responseFormat' | 'tools'> &
  { responseFormat?: Format | undefined, tools?: PortableTool[] | undefined }

/** A tool with its schema as text. */
export type PortableTool = Omit<Tool, 'parameters'> & { parameters?: string }

/** Every call: its arguments, the items that it yields while it runs, and its result. */
export interface Methods {
  load: {
    args: [source: PortableSource, options: Omit<LoadOptions, PageOptions>]
    item: Progress
    result: ModelInfo
  }
  generate: {
    args: [input: Input, options: PortableOptions]
    item: Token
    result: Stats
  }
  tokenize: { args: [text: string, special: boolean], item: never, result: Uint32Array }
  detokenize: { args: [ids: Uint32Array], item: never, result: string }
  countTokens: {
    args: [input: string | readonly Message[], options: PortableOptions]
    item: never
    result: number
  }
  logits: { args: [ids: Uint32Array], item: never, result: Float32Array }
  decide: {
    args: [text: string, options: Omit<DecideOptions, PageOptions>]
    item: never
    result: Decisions
  }
  /** The items are the numbers of texts that are done. */
  embed: {
    args: [texts: readonly (string | Uint32Array)[], options: Omit<EmbedOptions, PageOptions>]
    item: number
    result: Embedded
  }
  /** The result has the number by which other calls name the adapter. */
  loadAdapter: { args: [file: Blob], item: never, result: AdapterFacts }
  /** The result is a hash of them and their scales, empty without any. */
  setAdapters: { args: [adapters: readonly { id: number, scale: number }[]], item: never, result: string }
  freeAdapter: { args: [id: number], item: never, result: undefined }
  saveChat: { args: [messages: readonly Message[], note: string], item: never, result: Blob }
  /** The result is the note. */
  restoreChat: { args: [saved: Blob], item: never, result: string }
  /** The items are the shares that are done. */
  inspect: {
    args: [input: Input, options: Omit<InspectOptions, PageOptions>]
    item: number
    result: Inspection
  }
  profile: {
    args: [position: number, tokens: number, options: ProfileOptions]
    item: never
    result: Profile
  }
  /** Asks a worker which version it speaks. */
  hello: { args: [], item: never, result: Hello }
  /** Frees the model that the call `loadId` has loaded, and leaves the worker running. */
  dispose: { args: [loadId: number], item: never, result: undefined }
}

export type Method = keyof Methods

/** The calls to a loaded model, in a worker or in this thread. */
export type ModelMethod = Exclude<Method, 'load' | 'hello' | 'dispose'>

/** The options of every call. */
export interface Streaming<M extends Method> {
  /** Gets the items that the call yields while it runs. */
  onItem?: (item: Methods[M]['item']) => void
  /** Ends the call early. */
  signal?: AbortSignal
}

/** A model, in a worker or in this thread. The same calls give the same answers. */
export interface Transport {
  /** Loads the model. To be called once for each transport, and again if that has failed. */
  load(
    source: PortableSource, options: Methods['load']['args'][1], streaming: Streaming<'load'>
  ): Promise<ModelInfo>
  /** Calls the loaded model. */
  call<M extends ModelMethod>(
    method: M, args: Methods[M]['args'], streaming?: Streaming<M>
  ): Promise<Methods[M]['result']>
  /**
   * Called with the reports of a load that come after it has resolved, while the model is being
   * stored.
   */
  onStoring?: ((progress: Progress) => void) | undefined
  /** Called when it will answer no more calls, with the reason: the model was freed, or its thread has ended. */
  onEnd?: ((why: BitNetError) => void) | undefined
  /** Called each time the model loses its device. */
  onLost?: ((loss: DeviceLoss) => void) | undefined
  /** Frees the model and ends its thread. Calls in flight reject with `why`. */
  close(why: BitNetError): void
}

// Each type below is a union of one message for each method in `M`; `method` tells them apart.

/** A call. `aborted` is true if its signal had aborted before it was sent. */
export type Call<M extends Method = Method> = {
  [K in M]: { kind: 'call', id: number, method: K, args: Methods[K]['args'], aborted: boolean }
}[M]

/** An item that a call yields while it runs. */
export type Item<M extends Method = Method> = {
  [K in M]: { kind: 'item', id: number, method: K, item: Methods[K]['item'] }
}[M]

/** The end of a call that succeeded. */
export type Result<M extends Method = Method> = {
  [K in M]: { kind: 'result', id: number, method: K, result: Methods[K]['result'] }
}[M]

export type ToWorker<M extends Method = Method> = Call<M> | { kind: 'cancel', id: number }

/** A reply to the call `id`. */
export type Reply<M extends Method = Method> =
  | Item<M>
  | Result<M>
  | { kind: 'error', id: number, error: Failure }

export type FromWorker<M extends Method = Method> =
  | Reply<M>
  /** The progress of storing the model that the call `id` has loaded. */
  | { kind: 'storing', id: number, progress: Progress }
  /** The device of the model that the call `id` has loaded is lost. */
  | { kind: 'lost', id: number, loss: DeviceLoss }
  /** The worker cannot go on. Every call in flight fails with this error. */
  | { kind: 'fatal', error: Failure, isOurs: boolean }

/** A worker's answer to `hello`. */
export interface Hello {
  version: number
  /** The name of a lock that the worker holds as long as it lives. */
  lock?: string
}

/** An error in a message. If the error itself were posted, it would lose its class and its code. */
export interface Failure {
  code: ErrorCode
  message: string
  /** The text of the error's cause. */
  cause?: string
}

/** Turns an error into a message. */
export function toFailure(error: unknown): Failure {
  const { code, message, cause } = error instanceof BitNetError ? error : internalError(error)
  return cause === undefined ? { code, message } : { code, message, cause: String(cause) }
}

/** Turns the message back into an error. */
export const fromFailure = ({ code, message, cause }: Failure): BitNetError =>
  new BitNetError(code, message, cause === undefined ? undefined : { cause })

/** The error for a bug in this package. `what` is a thrown value or a text. */
export const internalError = (what: unknown): BitNetError => {
  const said = what instanceof Error ? what.message : String(what)
  return new BitNetError('internal', `internal error (please report it): ${said}`, { cause: what })
}

/** The error of every call after `dispose()`. */
export const disposedError = (): BitNetError =>
  new BitNetError('disposed', 'the model was disposed of')

/** A `Request`, as plain values that can be posted. */
export interface PortableRequest {
  url: string
  init: RequestInit
}

/** A source in a form that can be posted to a worker. */
export type PortableSource = Exclude<Source, URL | Request> | { request: PortableRequest }
