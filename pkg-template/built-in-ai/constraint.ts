// The option `responseConstraint`.
import { isObject, isPlain } from './idl.js'
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
  const format: ResponseFormat = isRegExp(given) ? given : { type: 'json_schema', schema: copied(given) }
  return { format, isTold: !omitsInput }
}

/** A schema as it is now: the page may change it before its prompt's turn comes. */
function copied(schema: object): Record<string, unknown> {
  const own = schema as Record<string, unknown>
  // Those of other packages say themselves as JSON Schema when they are asked.
  if (!isPlain(schema) || '~standard' in schema || 'toJSONSchema' in schema) return own
  try {
    return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
  } catch {
    // The package says why it cannot be read.
    return own
  }
}

/** The messages with the constraint in the user's last one. Rejects as `tell` throws. */
export async function told(messages: readonly Message[], constraint: Constraint | undefined): Promise<Message[]> {
  if (!constraint) return [...messages]
  const { tell } = await fetched(() => import('./told.js'))
  return tell(messages, constraint.format, constraint.isTold)
}
