import type { ErrorCode } from './types.js'

/**
 * A failure of this package. Branch on `code`, which is stable; `message` is for people. Stopping
 * is no failure: what a signal aborts rejects with the signal's reason.
 */
export class BitNetError extends Error {
  override readonly name = 'BitNetError'
  /** What went wrong. */
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
