// The options that stay on this side of the border; the crate checks the others.
import { BitNetError } from './error.js'

export function checkLoad(signal: unknown, onProgress: unknown, worker: unknown): void {
  checkSignal(signal)
  check('onProgress', onProgress === undefined || typeof onProgress === 'function', 'a function')
  check('worker', typeof worker === 'boolean' || (typeof Worker === 'function' && worker instanceof Worker), 'true, false or a Worker')
}

export function checkSignal(signal: unknown): void {
  check('signal', signal === undefined || signal instanceof AbortSignal, 'an AbortSignal')
}

function check(name: string, valid: boolean, what: string): void {
  if (!valid) throw new BitNetError('bad-option', `bad option \`${name}\`: must be ${what}`)
}
