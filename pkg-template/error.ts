import type { ErrorCode } from './types.js'

/**
 * A failure of this package. Branch on `code`, which is stable; `message` is for people. Stopping
 * is no failure: what a signal aborts rejects with the signal's reason.
 */
export class BitNetError extends Error {
  override readonly name = 'BitNetError'
  /** What went wrong. */
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** A part of the package that is fetched when it is needed. `load` imports it. */
export async function fetched<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : cause
    throw new BitNetError('network', `a script of the package could not be loaded: ${why}`, { cause })
  }
}
