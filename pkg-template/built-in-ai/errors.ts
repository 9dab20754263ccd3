// The drafts' exceptions.
import type { ErrorCode } from '../types.js'

/** The exception of a model's input that is too long. Browsers that know it have a class for it. */
export interface QuotaExceeded extends DOMException {
  /** The tokens of the input; null if they were not counted. */
  readonly requested: number | null
  /** The most tokens that there is room for; null if the input was not counted. */
  readonly quota: number | null
}

/** The class of that exception. */
export interface QuotaExceededClass {
  new (message?: string, options?: { requested?: number, quota?: number }): QuotaExceeded
}

class Exceeded extends DOMException implements QuotaExceeded {
  readonly requested: number | null
  readonly quota: number | null

  constructor(message = '', { requested, quota }: { requested?: number, quota?: number } = {}) {
    super(message, 'QuotaExceededError')
    this.requested = requested ?? null
    this.quota = quota ?? null
  }
}

/** The browser's own class, or one that does the same. */
export const QuotaExceededError: QuotaExceededClass =
  (globalThis as { QuotaExceededError?: QuotaExceededClass }).QuotaExceededError ?? Exceeded

/** The exception for an input that has `requested` tokens, more than the `quota` that there is room for. */
export const tooLong = (requested: number, quota: number): QuotaExceeded =>
  new QuotaExceededError(`the prompt takes ${requested} tokens, and there are ${quota}`, { requested, quota })

export const exception = (name: string, message: string): DOMException => new DOMException(message, name)

/** The exception of every call after `destroy()`, and of those that run then. */
export const destroyed = (): DOMException => exception('InvalidStateError', 'this was destroyed')

/** The names of exceptions for the package's codes. All others are an `OperationError`. */
const NAMES: Partial<Record<ErrorCode, string>> = {
  'no-webgpu': 'NotSupportedError',
  'no-adapter': 'NotSupportedError',
  'missing-feature': 'NotSupportedError',
  'bad-gguf': 'NotSupportedError',
  'unsupported-model': 'NotSupportedError',
  'missing-tensor': 'NotSupportedError',
  'tensor-shape': 'NotSupportedError',
  'bad-adapter': 'NotSupportedError',
  'bad-template': 'NotSupportedError',
  'bad-option': 'NotSupportedError',
  'embedding-model': 'NotSupportedError',
  'http': 'NetworkError',
  'network': 'NetworkError',
  'io': 'NetworkError',
  'not-cached': 'NetworkError',
  'disposed': 'InvalidStateError'
}

/** The code of an error of the package, also of another copy of it; `undefined` for any other error. */
const codeOf = (error: unknown): ErrorCode | undefined =>
  error instanceof Error && error.name === 'BitNetError' ? (error as Error & { code: ErrorCode }).code : undefined

/** The exception for an error of the package, with that as its `cause`; any other error as it is. */
export function translated(error: unknown): unknown {
  const code = codeOf(error)
  if (code === undefined) return error
  const message = `${code}: ${(error as Error).message}`
  const found = code === 'context-full' ? new QuotaExceededError(message) : exception(NAMES[code] ?? 'OperationError', message)
  return Object.defineProperty(found, 'cause', { value: error })
}
