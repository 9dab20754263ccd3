// Checks the values of a request. Each check throws OpenAI's error for what is wrong.
import { BitNetError } from '../error.js'

/** A request that cannot be answered, with the message that OpenAI's servers would send. */
export class RequestError extends BitNetError {
  /** OpenAI's code for the error. */
  readonly kind: string | null
  /** The wrong parameter. */
  readonly param: string | null
  /** The HTTP status. */
  readonly status: number

  constructor(message: string, kind: string | null, param: string | null = null, status = 400) {
    super('bad-option', message)
    this.kind = kind
    this.param = param
    this.status = status
  }
}

export const isGiven = (value: unknown): boolean => value !== undefined && value !== null

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

export function required(object: Record<string, unknown>, field: string, param?: string): unknown {
  if (isGiven(object[field])) return object[field]
  const name = param ? `${param}.${field}` : field
  const why = `Missing required parameter: '${name}'.`
  throw new RequestError(why, 'missing_required_parameter', name)
}

export function number(value: unknown, param: string, min: number, max: number): number {
  if (typeof value !== 'number') throw wrongType(param, 'a number', value)
  if (value >= min && value <= max) return value
  const why = `Invalid '${param}': ${value}. Expected a number from ${min} to ${max}.`
  throw new RequestError(why, 'invalid_value', param)
}

export function integer(
  value: unknown, param: string, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER
): number {
  const isFraction = typeof value === 'number' && !Number.isInteger(value)
  if (isFraction) throw wrongType(param, 'an integer', value)
  return number(value, param, min, max)
}

export function boolean(value: unknown, param: string): boolean {
  if (typeof value !== 'boolean') throw wrongType(param, 'a boolean', value)
  return value
}

export function text(value: unknown, param: string): string {
  if (typeof value !== 'string') throw wrongType(param, 'a string', value)
  return value
}

export function list(value: unknown, param: string, expected = 'an array'): unknown[] {
  if (!Array.isArray(value)) throw wrongType(param, expected, value)
  return value
}

export function oneOf(value: unknown, param: string, known: string[]): string {
  const found = text(value, param)
  if (known.includes(found)) return found
  const supported = known.map(name => `'${name}'`).join(', ')
  const why = `Invalid value: '${found}'. Supported values of '${param}' are: ${supported}.`
  throw new RequestError(why, 'invalid_value', param)
}

export function wrongType(param: string, expected: string, value: unknown): RequestError {
  const got = value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value
  const why = `Invalid type for '${param}': expected ${expected}, but got ${got} instead.`
  return new RequestError(why, 'invalid_type', param)
}

/** The error for a name that OpenAI does not have. */
export function unknown(param: string): RequestError {
  return new RequestError(`Unknown parameter: '${param}'.`, 'unknown_parameter', param)
}

/** The error for a parameter of OpenAI, or its value, that this package does not support. */
export function unsupported(param: string, value?: string, why?: string): RequestError {
  const reason = why ? `: ${why}` : '.'
  return value === undefined
    ? new RequestError(`Unsupported parameter: '${param}'${reason}`, 'unsupported_parameter', param)
    : new RequestError(`Unsupported value: '${param}' '${value}'${reason}`, 'unsupported_value', param)
}
