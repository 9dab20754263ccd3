// Failures as the AI SDK expects them. It knows its kinds of errors by symbols, so that errors of any package
// may be one. Ours stay what they are, with their codes.
import { badOption } from '../check.js'
import type { BitNetError } from '../error.js'
import type { ErrorCode } from '../types.js'

/** Failures that the same call may not have again: a model is restored, and a download goes on. */
const PASSING: readonly ErrorCode[] = ['device-lost', 'network']

/** Also of another copy of the package, which has a class of its own. */
const isOfPackage = (error: unknown): error is BitNetError => error instanceof Error && error.name === 'BitNetError'

function marked<E extends Error>(error: E, kind: string, fields: object): E {
  const marks = ['', `.AI_${kind}`].map(name => [Symbol.for(`vercel.ai.error${name}`), true])
  return Object.assign(error, Object.fromEntries(marks), fields)
}

/**
 * A failure of a call: the SDK's `APICallError`, which says whether it pays to try again. The SDK does so.
 * Reasons of signals stay as they are.
 */
export function failureOf(error: unknown, modelId: string): unknown {
  if (!isOfPackage(error) || 'isRetryable' in error || 'functionality' in error) return error
  const isRetryable = PASSING.includes(error.code)
  // The SDK waits two seconds before it tries again. A model is restored by the next call, so that need not wait.
  const wait = error.code === 'device-lost' && { responseHeaders: { 'retry-after-ms': '0' } }
  return marked(error, 'APICallError', { url: modelId, requestBodyValues: {}, isRetryable, ...wait })
}

/** The SDK's `UnsupportedFunctionalityError`, with the code `bad-option`. */
export const unsupported = (at: string, functionality: string, why: string): BitNetError =>
  marked(badOption(at, why), 'UnsupportedFunctionalityError', { functionality })

/** The SDK's `NoSuchModelError`, with the code `bad-option`. */
export const noSuchModel = (modelId: string, modelType: string): BitNetError =>
  marked(badOption(modelType, 'a model here writes text or embeds it'), 'NoSuchModelError', { modelId, modelType })
