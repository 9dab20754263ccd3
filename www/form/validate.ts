// Compares a record with its schema after the reader has changed it. It knows the keywords that the
// package takes for an answer. A library for this would be larger than the page, or would make code
// from text, which strict policies forbid.
import { isObject, keywords, pointer, same, type Json, type Schema, type SchemaObject } from './schema.ts'

/** A part of a record that is not valid. */
export interface Fault {
  /** The JSON pointer of the part. */
  at: string
  /** The end of a sentence about it, such as `is missing`. */
  message: string
}

/** The parts of a value that are not valid; none if all of it is. `undefined` is a value that is missing. */
export function faultsOf(value: Json | undefined, schema: Schema): Fault[] {
  const faults = check(value, schema, { root: schema, at: '', depth: 0, budget: { left: MAX_CHECKS } })
  // Two parts of a schema may say the same.
  const isFirst = ({ at, message }: Fault) => (fault: Fault) => fault.at === at && fault.message === message
  return faults.filter((fault, n) => faults.findIndex(isFirst(fault)) === n)
}

interface Context {
  root: Schema
  at: string
  /** In how many schemas this one is nested. */
  depth: number
  /** How many more schemas are compared. */
  budget: { left: number }
}

// A schema that refers to itself for the same value would be compared for ever, and overflow the stack.

/** The most schemas that are compared with a record. */
const MAX_CHECKS = 2000
/** The most schemas that are nested in one another; the package allows fewer. */
const MAX_DEPTH = 200

function check(value: Json | undefined, schema: unknown, outer: Context): Fault[] {
  const context = { ...outer, depth: outer.depth + 1 }
  const { root, at, depth, budget } = context
  budget.left -= 1
  if (budget.left < 0 || depth > MAX_DEPTH) return []
  if (value === undefined) return [{ at, message: 'is missing' }]
  const own = keywords(schema, root)
  const fail = (message: string): Fault[] => [{ at, message }]
  if (own.not) return fail('is not allowed')
  const types = typesOf(own)
  if (types && !types.some(type => isOf(type, value))) {
    return fail(`must be ${types.map(type => TYPES.get(type) ?? type).join(' or ')}`)
  }
  if (Array.isArray(own.enum) && !own.enum.some(option => same(option, value))) {
    return fail(`must be one of ${own.enum.map(option => JSON.stringify(option)).join(', ')}`)
  }
  if ('const' in own && !same(own.const, value)) return fail(`must be ${JSON.stringify(own.const)}`)
  return [...ofType(value, own, context), ...ofCombinations(value, own, context)]
}

const TYPES = new Map(Object.entries({
  string: 'a text', number: 'a number', integer: 'a whole number', boolean: 'yes or no', array: 'a list',
  object: 'an object', null: 'null'
}))

/** The types that a schema allows; undefined if all. */
export function typesOf({ type }: SchemaObject): string[] | undefined {
  return type === undefined ? undefined : [type].flat().map(String)
}

function isOf(type: string, value: Json): boolean {
  switch (type) {
    case 'null': return value === null
    case 'array': return Array.isArray(value)
    case 'object': return isObject(value)
    case 'integer': return Number.isInteger(value)
    default: return typeof value === type
  }
}

function ofType(value: Json, own: SchemaObject, context: Context): Fault[] {
  if (typeof value === 'string') return messages(textFaults(value, own), context)
  if (typeof value === 'number') return messages(numberFaults(value, own), context)
  if (Array.isArray(value)) {
    return [...messages(sizeFaults(value.length, own, 'Items', 'items'), context), ...itemFaults(value, own, context)]
  }
  if (!isObject(value)) return []
  const size = Object.keys(value).length
  return [...messages(sizeFaults(size, own, 'Properties', 'keys'), context), ...keyFaults(value, own, context)]
}

const messages = (faults: string[], { at }: Context): Fault[] => faults.map(message => ({ at, message }))

const plural = (count: number, things: string) => `${count} ${count === 1 ? things.replace(/s$/, '') : things}`

/** A limit of a schema. */
const limit = (own: SchemaObject, keyword: string): number | undefined => {
  const value = own[keyword]
  return typeof value === 'number' ? value : undefined
}

function sizeFaults(size: number, own: SchemaObject, ending: string, things: string): string[] {
  const [least, most] = [limit(own, `min${ending}`), limit(own, `max${ending}`)]
  const faults: string[] = []
  if (least !== undefined && size < least) faults.push(`must have at least ${plural(least, things)}`)
  if (most !== undefined && size > most) faults.push(`must have at most ${plural(most, things)}`)
  return faults
}

function textFaults(text: string, own: SchemaObject): string[] {
  const faults = sizeFaults([...text].length, own, 'Length', 'characters')
  const { pattern, format } = own
  if (typeof pattern === 'string' && !matches(pattern, text)) faults.push(`must match ${pattern}`)
  const known = FORMATS.get(String(format))
  if (known && !known.fits(text)) faults.push(`must be ${known.name}`)
  return faults
}

/** Whether a pattern matches somewhere. One that this browser cannot read is not compared. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return true
  }
}

const isDate = (text: string): boolean => {
  const time = Date.parse(`${text}T00:00:00Z`)
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}
const isTime = (text: string): boolean =>
  /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/.test(text)

/** The formats that are compared; others say only what a text is for. */
const FORMATS = new Map(Object.entries({
  'date': { name: 'a date such as 2026-11-28', fits: isDate },
  'time': { name: 'a time such as 18:30:00Z', fits: isTime },
  'date-time': {
    name: 'a date and time such as 2026-11-28T18:30:00Z',
    fits: text => text[10] === 'T' && isDate(text.slice(0, 10)) && isTime(text.slice(11))
  },
  'email': { name: 'a mail address', fits: text => /^[^\s@]+@[a-z\d]([a-z\d-]*[a-z\d])?(\.[a-z\d]([a-z\d-]*[a-z\d])?)+$/i.test(text) },
  'ipv4': { name: 'an address such as 192.0.2.1', fits: text => /^((25[0-5]|(2[0-4]|1\d|[1-9])?\d)(\.(?!$)|$)){4}$/.test(text) },
  'uri': { name: 'an address such as https://example.com', fits: text => /^[a-z][a-z\d+.-]*:\S*$/i.test(text) },
  'uuid': { name: 'a UUID', fits: text => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text) }
} satisfies Record<string, { name: string, fits: (text: string) => boolean }>))

function numberFaults(value: number, own: SchemaObject): string[] {
  const faults: string[] = []
  const compare = (keyword: string, words: string, isRight: (limit: number) => boolean) => {
    const bound = limit(own, keyword)
    if (bound !== undefined && !isRight(bound)) faults.push(`must be ${words} ${bound}`)
  }
  compare('minimum', 'at least', bound => value >= bound)
  compare('maximum', 'at most', bound => value <= bound)
  compare('exclusiveMinimum', 'more than', bound => value > bound)
  compare('exclusiveMaximum', 'less than', bound => value < bound)
  compare('multipleOf', 'a multiple of', bound => {
    const times = value / bound
    // 0.3 / 0.1 is not quite 3.
    return Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, Math.abs(times))
  })
  return faults
}

function itemFaults(items: Json[], own: SchemaObject, context: Context): Fault[] {
  // Before 2020 the first items were listed in `items`, and the others in `additionalItems`.
  const first = [own.prefixItems, own.items].find(Array.isArray) ?? []
  const rest = Array.isArray(own.items) ? own.additionalItems : own.items
  return items.flatMap((item, n) => {
    const schema: unknown = n < first.length ? first[n] : rest
    return schema === undefined ? [] : check(item, schema, { ...context, at: pointer(context.at, n) })
  })
}

function keyFaults(value: { [key: string]: Json }, own: SchemaObject, context: Context): Fault[] {
  const part = (key: string) => pointer(context.at, key)
  const properties = isObject(own.properties) ? own.properties : {}
  const patterns = isObject(own.patternProperties) ? Object.entries(own.patternProperties) : []
  const required = Array.isArray(own.required) ? own.required.map(String) : []
  const missing = required
    .filter(key => !Object.hasOwn(value, key))
    .map(key => ({ at: part(key), message: 'is missing' }))
  const present = Object.entries(value).flatMap(([key, held]) => {
    const named: unknown[] = Object.hasOwn(properties, key) ? [properties[key]] : []
    const schemas = [...named, ...patterns.filter(([pattern]) => matches(pattern, key)).map(([, schema]) => schema)]
    if (schemas.length === 0 && own.additionalProperties !== undefined) schemas.push(own.additionalProperties)
    return schemas.flatMap(schema => check(held, schema, { ...context, at: part(key) }))
  })
  return [...missing, ...present]
}

function ofCombinations(value: Json, own: SchemaObject, context: Context): Fault[] {
  const options = (keyword: string): Fault[][] => {
    const schemas = own[keyword]
    return Array.isArray(schemas) ? schemas.map(schema => check(value, schema, context)) : []
  }
  const faults = options('allOf').flat()
  const oneOf = options('oneOf')
  for (const tried of [options('anyOf'), oneOf]) {
    if (tried.length === 0 || tried.some(found => found.length === 0)) continue
    // The faults of the option that comes closest say most.
    const [closest] = [...tried].sort((a, b) => depth(b) - depth(a) || a.length - b.length)
    faults.push(...closest!)
  }
  if (oneOf.filter(found => found.length === 0).length > 1) {
    faults.push({ at: context.at, message: 'fits several forms of which it must have one' })
  }
  return faults
}

/** How deep the first fault is: an option whose type fits has its faults further within. */
const depth = (faults: Fault[]): number => Math.min(...faults.map(({ at }) => at.length))
