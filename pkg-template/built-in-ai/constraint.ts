// The option `responseConstraint`.
import { isObject } from './idl.js'
import { isRegExp } from '../check.js'
import { fetched } from '../error.js'
import type { Message, ResponseFormat } from '../types.js'

/** A format of an answer. */
export interface Constraint {
  format: ResponseFormat
  /** Whether the model is told about it, too. */
  isTold: boolean
}

/** The constraint of a prompt's options, if they have one. Throws a `TypeError`. */
export function constraintOf(given: unknown, omitsInput: unknown): Constraint | undefined {
  if (given === undefined) {
    if (omitsInput) throw new TypeError('`omitResponseConstraintInput` needs a `responseConstraint`')
    return undefined
  }
  if (!isObject(given)) throw new TypeError('`responseConstraint` must be a JSON schema or a RegExp')
  const format: ResponseFormat = isRegExp(given)
    ? given
    : { type: 'json_schema', schema: given as Record<string, unknown> }
  return { format, isTold: !omitsInput }
}

const TOLD = {
  json_schema: 'Answer in JSON that is valid by this JSON schema:',
  regex: 'Answer with a text that this regular expression matches as a whole:'
}

/**
 * The messages with the constraint in the user's last one. Rejects with `bad-option` for a schema that cannot be
 * written as JSON.
 */
export async function told(messages: readonly Message[], constraint: Constraint | undefined): Promise<Message[]> {
  if (!constraint) return [...messages]
  const { portableOptions } = await fetched(() => import('../page/format.js'))
  const { kind, text } = portableOptions({ responseFormat: constraint.format }).responseFormat!
  const last = messages.findLastIndex(({ role }) => role === 'user')
  return messages.map((message, n) => constraint.isTold && n === last
    ? { ...message, content: `${message.content}\n\n${TOLD[kind as keyof typeof TOLD]}\n${text}` }
    : message)
}
