// Calls of tools and their results, as pages see them.
import { exception } from './errors.js'
import { dictionary, isObject, isPlain, oneOf, required, sequence, text } from './idl.js'
import type { ToolCall } from '../types.js'

/** A call that the model proposes, or that a page tells it about. */
export class LanguageModelToolCall {
  /** The name by which its result refers to it. */
  readonly callID: string
  /** The tool's name. */
  readonly name: string
  /** Its arguments, which are valid by the tool's `inputSchema` if the model has made them. */
  readonly arguments: unknown

  constructor(init: { callID: string, name: string, arguments?: unknown }) {
    const given = dictionary(init, 'a tool call')
    this.callID = required(given.callID, 'callID')
    this.name = required(given.name, 'name')
    this.arguments = given.arguments ?? {}
  }
}

/** A part of a result. */
export interface LanguageModelToolResultContent {
  /** Only `text` and `object` are supported. */
  type: 'text' | 'object' | 'image' | 'audio'
  value: unknown
}

/** The result of a call. */
export class LanguageModelToolSuccess {
  readonly callID: string
  readonly name: string
  readonly result: readonly LanguageModelToolResultContent[]

  constructor(init: { callID: string, name: string, result: Iterable<LanguageModelToolResultContent> }) {
    const given = dictionary(init, 'a tool response')
    this.callID = required(given.callID, 'callID')
    this.name = required(given.name, 'name')
    this.result = Object.freeze(sequence(given.result, 'result').map(item => {
      const { type, value } = dictionary(item, 'a part of a result')
      return Object.freeze({ type: oneOf(type, ['text', 'object', 'image', 'audio'], 'type'), value })
    }))
  }
}

/** The failure of a call. */
export class LanguageModelToolError {
  readonly callID: string
  readonly name: string
  readonly errorMessage: string

  constructor(init: { callID: string, name: string, errorMessage: string }) {
    const given = dictionary(init, 'a tool response')
    this.callID = required(given.callID, 'callID')
    this.name = required(given.name, 'name')
    this.errorMessage = required(given.errorMessage, 'errorMessage')
  }
}

/** The call as the package's messages have it. Throws a `TypeError` or a `DataError`. */
export function callOf(value: unknown): ToolCall {
  if (!isObject(value)) throw new TypeError('the value of a tool call must be a LanguageModelToolCall')
  const { callID, name, arguments: given = {} } = value as Record<string, unknown>
  const args = isPlain(given) ? JSON.parse(written(given, 'the arguments of a tool call')) : undefined
  if (!args) throw exception('DataError', 'the arguments of a tool call must be an object')
  return { id: required(callID, 'callID'), name: required(name, 'name'), arguments: args }
}

/** The call to which a result belongs, and its text. Throws as `callOf` does. */
export function resultOf(value: unknown): { toolCallId: string, content: string } {
  if (!isObject(value)) throw new TypeError('the value of a tool response must be a LanguageModelToolSuccess or LanguageModelToolError')
  const { callID, result, errorMessage } = value as Record<string, unknown>
  const toolCallId = required(callID, 'callID')
  if (errorMessage !== undefined) return { toolCallId, content: `Error: ${text(errorMessage)}` }
  return { toolCallId, content: sequence(result, 'result').map(partOf).join('\n') }
}

function partOf(item: unknown): string {
  const { type, value } = dictionary(item, 'a part of a result')
  if (type === 'image' || type === 'audio') throw exception('NotSupportedError', `results of the type ${type} are not supported`)
  if (typeof value === 'string') return value
  // A picture would be written as `{}`.
  if (isObject(value) && !isPlain(value) && !Array.isArray(value)) throw exception('DataError', 'a result must be JSON')
  return written(value, 'a result')
}

/** A value as JSON. */
function written(value: unknown, what: string): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch {
    // Circles and large integers have no JSON.
  }
  if (json === undefined) throw exception('DataError', `${what} must be JSON`)
  return json
}
