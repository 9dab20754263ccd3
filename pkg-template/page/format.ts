// Turns the options `responseFormat` and `tools` into a form that can be posted to a worker.
import { badOption, checkChoice, checkText, isRegExp } from '../check.js'
import { BitNetError } from '../error.js'
import type { PortableOptions, PortableTool } from '../protocol/messages.js'
import type { GenerateOptions } from '../types.js'

type Format = NonNullable<PortableOptions['responseFormat']>

const OPTION = 'responseFormat'

/** The kinds that a page can ask for, and the fields of each beside `type`. */
type Kind = Exclude<Format['kind'], 'calls'>
const FIELDS: Record<Kind, string | undefined> = {
  json_schema: 'schema', json_object: undefined, regex: 'pattern', lark: 'grammar'
}
const KINDS = Object.keys(FIELDS) as Kind[]

/** A schema that can say itself as JSON Schema: of the Standard Schema convention, or older ones of zod. */
interface Convertible {
  '~standard'?: { jsonSchema?: { input?: (options: { target: string }) => unknown } }
  toJSONSchema?: () => unknown
}

/** Throws `bad-option`. */
export function portableOptions({ responseFormat, tools, ...rest }: GenerateOptions): PortableOptions {
  if (responseFormat !== undefined && tools !== undefined && rest.toolChoice !== 'none') {
    throw badOption(OPTION, 'cannot be given together with `tools`')
  }
  const options: PortableOptions = rest
  if (responseFormat !== undefined) options.responseFormat = readable(OPTION, () => read(responseFormat))
  if (tools !== undefined) options.tools = readable('tools', () => portableTools(tools))
  return options
}

/** The objects of a caller may throw anything when they are read. */
function readable<T>(option: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof BitNetError) throw error
    throw badOption(option, `cannot be read: ${reason(error)}`)
  }
}

/** The crate checks all but the schemas. */
function portableTools(tools: unknown): PortableTool[] {
  if (!Array.isArray(tools)) throw badOption('tools', 'must be an array')
  return tools.map((tool: unknown, n) => {
    if (typeof tool !== 'object' || tool === null) throw badOption(`tools[${n}]`, 'must be an object')
    const { parameters, ...rest } = tool as PortableTool
    if (parameters === undefined) return rest
    return { ...rest, parameters: schema(parameters, `tools[${n}].parameters`).text }
  })
}

function read(format: unknown): Format {
  if (isRegExp(format)) return regex(format, OPTION)
  if (typeof format !== 'object' && typeof format !== 'function' || format === null) throw badOption(OPTION, 'must be an object')
  if (isConvertible(format)) return schema(format, OPTION)
  const { type, ...rest } = format as Record<string, unknown>
  checkChoice(`${OPTION}.type`, type, KINDS)
  const kind = type as Kind
  const field = FIELDS[kind]
  for (const name of Object.keys(rest)) {
    if (name !== field) throw badOption(`${OPTION}.${name}`, 'there is no such option')
  }
  if (field === undefined) return { kind, text: '' }
  const [name, value] = [`${OPTION}.${field}`, rest[field]]
  if (kind === 'json_schema') return schema(value, name)
  if (isRegExp(value) && kind === 'regex') return regex(value, name)
  checkText(name, value)
  return { kind, text: value as string }
}

/** Flags that do not change what a whole text has to be. With `v`, brackets mean other things. */
const FLAGS = /^[dguy]*$/

function regex({ source, flags }: RegExp, name: string): Format {
  if (!FLAGS.test(flags)) throw badOption(name, `must have no flags but d, g, u and y; it has '${flags}'`)
  // An empty one has the source `(?:)`.
  return { kind: 'regex', text: source }
}

const isConvertible = (value: unknown): value is Convertible =>
  (typeof value === 'object' || typeof value === 'function') && value !== null &&
  ('~standard' in value || typeof (value as Convertible).toJSONSchema === 'function')

function schema(value: unknown, name: string): Format {
  const given = isConvertible(value) ? converted(value, name) : value
  // A promise, a map or a `RegExp` would be written as `{}`, which allows everything.
  const isObject = Object.prototype.toString.call(given) === '[object Object]'
  const isSchema = typeof given === 'boolean' || isObject
  const text = isSchema ? written(given, name) : undefined
  if (text === undefined) throw badOption(name, 'must be a JSON schema')
  return { kind: 'json_schema', text }
}

function written(schema: unknown, name: string): string | undefined {
  try {
    return JSON.stringify(schema)
  } catch (error) {
    throw badOption(name, `cannot be written as JSON: ${reason(error)}`)
  }
}

/** The JSON schema of the inputs of a schema object: the caller can parse the answer with the object. */
function converted(value: Convertible, name: string): unknown {
  try {
    const standard = value['~standard']?.jsonSchema
    if (standard?.input) return standard.input({ target: 'draft-2020-12' })
    if (typeof value.toJSONSchema === 'function') return value.toJSONSchema()
  } catch (error) {
    throw badOption(name, `has no JSON schema: ${reason(error)}`)
  }
  throw badOption(name, 'is a schema that does not give its JSON schema; convert it first, as `z.toJSONSchema` does')
}

const reason = (error: unknown): string => error instanceof Error ? error.message : typeof error
