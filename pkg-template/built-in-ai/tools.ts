// The option `tools`.
import { callbackOf, dictionary, isObject, required, sequence, text } from './idl.js'
import type { JsonSchema, RunnableTool, Tool } from '../types.js'

/** The tools of a session. */
export interface Tools {
  /** As the package describes them to the model. */
  described: readonly Tool[]
  /** To run by themselves, by their names; absent if the page runs them. */
  runnable?: Readonly<Record<string, RunnableTool>>
}

/**
 * The tools of a session's options; `undefined` if there are none. Tools that have `execute` are run by the session.
 * If none has it, the page runs them: then `isProposing` must say that the session's outputs may be calls.
 *
 * Throws a `TypeError` for a tool that is none, and what a schema throws when it is read.
 */
export function toolsOf(given: unknown, isProposing: boolean): Tools | undefined {
  if (given === undefined) return undefined
  const read = sequence(given, 'tools').map(toolOf)
  if (read.length === 0) return undefined
  const names = read.map(({ tool }) => tool.name)
  if (new Set(names).size < names.length) throw new TypeError('two tools have the same name')
  const described = read.map(({ tool }) => tool)
  const run = read.filter(({ execute }) => execute)
  if (run.length === 0) {
    if (!isProposing) throw new TypeError('tools without `execute` need `expectedOutputs` of the type tool-call')
    return { described }
  }
  if (run.length < read.length) throw new TypeError('either all tools have `execute`, or none')
  const runnable = read.map(({ tool: { name, ...rest }, execute }): [string, RunnableTool] =>
    [name, { ...rest, execute: args => execute!(args) }])
  return { described, runnable: Object.fromEntries(runnable) }
}

function toolOf(given: unknown): { tool: Tool, execute?: (args: unknown) => unknown } {
  const { name: named, description: described, inputSchema, execute } = dictionary(given, 'a tool')
  const name = required(named, 'the name of a tool')
  const description = required(described, 'the description of a tool')
  if (name === '') throw new TypeError('the name of a tool must not be empty')
  if (description === '') throw new TypeError('the description of a tool must not be empty')
  if (!isObject(inputSchema)) throw new TypeError('the inputSchema of a tool must be an object')
  const { type, properties, required: needed } = inputSchema as Record<string, unknown>
  if (type === undefined || text(type) !== 'object') throw new TypeError('the inputSchema of a tool must have the type object')
  if (properties !== undefined && !isObject(properties)) throw new TypeError('the properties of an inputSchema must be an object')
  if (needed !== undefined && !Array.isArray(needed)) throw new TypeError('`required` of an inputSchema must be an array')
  // Circles throw here, and so do the schema's own getters and `toJSON`.
  const parameters = JSON.parse(JSON.stringify(inputSchema)) as JsonSchema
  const run = callbackOf<(args: unknown) => unknown>(execute, 'execute')
  return { tool: { name, description, parameters }, ...(run && { execute: run }) }
}
