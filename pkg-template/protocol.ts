// What the page and the worker say to each other:
// `{ id, method, args }` → `{ id, value }` or `{ id, error }`, `{ id, piece }` while it streams,
// `{ id, cancel }` the other way. The first call is `hello`.
import { BitNetError } from './error.js'
import type { DeviceLoss, ErrorCode, GenerateOptions, Input, LoadOptions, Message, ModelInfo, Profile, Source, Stats } from './types.js'

/** Grows with every change to the messages: a page must not talk to yesterday's worker. */
export const VERSION = 2

/** The options that stay on this side of the border. */
type Local = 'signal' | 'onProgress' | 'worker'

/** What a model can be asked, wherever it lives. */
export interface Methods {
  load(source: PortableSource, options: Omit<LoadOptions, Local>): ModelInfo
  generate(input: Input, options: Omit<GenerateOptions, Local>): Stats
  tokenize(text: string, special: boolean): Uint32Array
  detokenize(ids: Uint32Array): string
  countTokens(input: string | readonly Message[]): number
  logits(ids: Uint32Array): Float32Array
  profile(position: number, tokens: number): Profile
}

export type Method = keyof Methods

/** What comes while a call runs, and what ends it early. */
export interface Streaming {
  onPiece?: (piece: unknown) => void
  signal?: AbortSignal
}

/** A model in this thread or in a worker: the same calls, the same answers. */
export interface Transport {
  call<M extends Method>(method: M, args: Parameters<Methods[M]>, streaming?: Streaming): Promise<ReturnType<Methods[M]>>
  /** Told of each loss of the model's device. */
  onLost?: ((loss: DeviceLoss) => void) | undefined
  /** Lets go of the model and its thread. Calls in flight reject with `why`. */
  close(why: BitNetError): void
}

export interface Failure {
  code: ErrorCode
  message: string
}

export type ToWorker =
  | { id: number, method: Method | 'hello' | 'dispose', args: unknown[] }
  | { id: number, cancel: true }

export type FromWorker =
  | { id: number, value: unknown }
  | { id: number, error: Failure }
  | { id: number, piece: unknown }
  /** The device of the model that the call `id` has loaded is lost. */
  | { id: number, lost: DeviceLoss }
  /** Everything in flight is lost. */
  | { fatal: Failure }

/** The worker's answer to `hello`: its version, and the lock it holds as long as it lives. */
export interface Hello {
  version: number
  lock?: string
}

/** A failure as it crosses: a structured clone of an error would lose its class and code. */
export const failure = (error: unknown): Failure =>
  error instanceof BitNetError
    ? { code: error.code, message: error.message }
    : { code: 'internal', message: `internal error (please report it): ${error instanceof Error ? error.message : String(error)}` }

export const fromFailure = ({ code, message }: Failure): BitNetError => new BitNetError(code, message)

/** A request in parts that can be posted. */
export interface PortableRequest {
  url: string
  init: RequestInit
}

/** A source that can be posted to a worker. */
export type PortableSource = Exclude<Source, URL | Request> | { request: PortableRequest }
