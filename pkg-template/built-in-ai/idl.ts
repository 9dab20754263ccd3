// Turns a page's values into those of the drafts' dictionaries, as Web IDL does. Each function throws
// a `TypeError` for a value that cannot be turned, and what the value's own getters throw.

/** The members of a dictionary. Undefined and null have none. */
export function dictionary(value: unknown, what: string): Record<string, unknown> {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) throw new TypeError(`${what} must be an object`)
  return value as Record<string, unknown>
}

/** A text. Any value has one, but symbols. */
export const text = (value: unknown): string => `${value as string}`

/** The text of a member that must be there. */
export function required(value: unknown, what: string): string {
  if (value === undefined) throw new TypeError(`${what} is missing`)
  return text(value)
}

/** A text that must be one of `values`. */
export function oneOf<T extends string>(value: unknown, values: readonly T[], what: string): T {
  const found = required(value, what) as T
  if (!values.includes(found)) throw new TypeError(`${what} must be one of ${values.join(', ')}, not '${found}'`)
  return found
}

/** The items of a sequence. */
export function sequence(value: unknown, what: string): unknown[] {
  if (!isSequence(value)) throw new TypeError(`${what} must be an array`)
  return [...value]
}

/** Whether a value is a sequence where a text may be given instead. */
export const isSequence = (value: unknown): value is Iterable<unknown> =>
  isObject(value) && typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function'

export const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null || typeof value === 'function'

export const isPlain = (value: unknown): value is object => Object.prototype.toString.call(value) === '[object Object]'

export function signalOf(value: unknown): AbortSignal | undefined {
  if (value !== undefined && !(value instanceof AbortSignal)) throw new TypeError('signal must be an AbortSignal')
  return value
}

export function callbackOf<T>(value: unknown, what: string): T | undefined {
  if (value !== undefined && typeof value !== 'function') throw new TypeError(`${what} must be a function`)
  return value as T | undefined
}

/** Language tags in their canonical form, each once. Throws a `RangeError` for one that is malformed. */
export const languageTags = (value: unknown, what: string): string[] =>
  Intl.getCanonicalLocales(sequence(value, what).map(text))
