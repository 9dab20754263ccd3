// Checks a caller's arguments before they are sent on. The crate checks all other options itself.
import { BitNetError } from './error.js'
import type { AbortOptions, Message } from './types.js'

/** A `bad-option` error, worded like those of the crate. */
export const badOption = (name: string, why: string): BitNetError =>
  new BitNetError('bad-option', `bad option \`${name}\`: ${why}`)

/** Refuses options that are no object, or that have a name outside `known`. */
export function checkOptions(options: unknown, known?: readonly string[]): void {
  const isObject = typeof options === 'object' && options !== null && !Array.isArray(options)
  check('options', isObject, 'must be an object')
  if (!known) return
  for (const name of Object.keys(options as object)) {
    check(name, known.includes(name), 'no such option')
  }
}

export function checkLoad(signal: unknown, onProgress: unknown, worker: unknown): void {
  checkSignal(signal)
  checkCallback('onProgress', onProgress)
  const isWorker = typeof Worker === 'function' && worker instanceof Worker
  check('worker', typeof worker === 'boolean' || isWorker, 'must be true, false or a Worker')
}

export function checkSignal(signal: unknown): void {
  const isSignal = signal === undefined || signal instanceof AbortSignal
  check('signal', isSignal, 'must be an AbortSignal')
}

/** Checks the options of a call that takes only a signal. Returns the signal. */
export function signalOf(options: AbortOptions): AbortSignal | undefined {
  checkOptions(options, ['signal'])
  checkSignal(options.signal)
  return options.signal
}

export function checkCallback(name: string, value: unknown): void {
  check(name, value === undefined || typeof value === 'function', 'must be a function')
}

/** Refuses every value but these texts, with the message that the crate would give. */
export function checkChoice(name: string, value: unknown, choices: readonly string[]): void {
  const quoted = choices.map(choice => `'${choice}'`)
  const said = `must be ${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
  check(name, choices.includes(value as string), said)
}

export function checkBoolean(name: string, value: unknown): void {
  check(name, typeof value === 'boolean', 'must be true or false')
}

export function checkText(name: string, value: unknown): void {
  check(name, typeof value === 'string', 'must be a string')
}

/** Also one of another frame, which has a class of its own. */
export const isRegExp = (value: unknown): value is RegExp => Object.prototype.toString.call(value) === '[object RegExp]'

/** Refuses every value but whole numbers that fit the crate's u32. */
export function checkCount(name: string, value: unknown): void {
  const isCount = Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 32
  check(name, isCount, 'must be an integer from 0 to 4294967295')
}

const ROLES: readonly unknown[] = ['system', 'user', 'assistant', 'tool'] satisfies Message['role'][]

export function checkMessages(messages: unknown): void {
  check('messages', Array.isArray(messages), 'must be an array')
  for (const [index, message] of (messages as unknown[]).entries()) {
    const { role, content } = (message ?? {}) as Partial<Message>
    check(`messages[${index}].role`, ROLES.includes(role), `must be one of ${ROLES.join(', ')}`)
    checkText(`messages[${index}].content`, content)
  }
}

/** Calls the page back. If the page throws, that is the page's bug, and does not end the work. */
export function report<T>(callback: ((value: T) => void) | undefined, value: T): void {
  try {
    callback?.(value)
  } catch (error) {
    reportError(error)
  }
}

function check(name: string, valid: boolean, why: string): void {
  if (!valid) throw badOption(name, why)
}
