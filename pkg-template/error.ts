import type { ErrorCode } from './types.js'

/**
 * A failure of this package. Branch on `code`, which is stable; `message` is for people. Stopping
 * is no failure: if a signal aborts a call, the call rejects with the signal's reason. Only failures of
 * the package's scripts have a `cause`; those of the engine have the reason in their message.
 */
export class BitNetError extends Error {
  override readonly name = 'BitNetError'
  /** The kind of failure. */
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** Loads a part of the package that is fetched when it is needed. `load` imports it. */
export async function fetched<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : cause
    throw new BitNetError('network', `a script of the package could not be loaded: ${why}`, { cause })
  }
}
