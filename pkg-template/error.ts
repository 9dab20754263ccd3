import type { ErrorCode } from './types.js'

/** Every failure this package reports. Branch on `code`; `message` is for people. */
export class BitNetError extends Error {
  override readonly name = 'BitNetError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
