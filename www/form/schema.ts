// JSON schemas, as far as a form needs them.

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** A JSON schema. */
export type Schema = boolean | SchemaObject

/** The keywords of a schema. Anything may stand there: readers check what they use. */
export type SchemaObject = { readonly [keyword: string]: unknown }

/** Whether a value has keys. */
export const isObject = (value: unknown): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a value can be a schema. */
export const isSchema = (value: unknown): value is Schema => typeof value === 'boolean' || isObject(value)

/** The JSON pointer of an item, by its index, or of the value of a key. `at` is that of the whole. */
export const pointer = (at: string, key: string | number): string =>
  `${at}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** How many references may lead to a schema. More would be a circle. */
const MAX_REFERENCES = 32

/**
 * The keywords of a schema, with those that it refers to. `true` has none. `false`, and a reference
 * that leads nowhere, is `{ not: {} }`, which nothing meets.
 */
export function keywords(schema: unknown, root: Schema): SchemaObject {
  let all = plain(schema)
  for (let n = 0; typeof all.$ref === 'string'; n += 1) {
    const { $ref, ...own } = all
    if (n === MAX_REFERENCES) return NOTHING
    all = { ...plain(find($ref, root)), ...own }
  }
  return all
}

const NOTHING: SchemaObject = { not: {} }

const plain = (schema: unknown): SchemaObject => {
  if (schema === true) return {}
  return isObject(schema) ? schema : NOTHING
}

/** The part of the whole schema that a reference such as `#/$defs/name` means. */
function find(reference: unknown, root: Schema): unknown {
  const [before, path] = String(reference).split('#', 2)
  if (before !== '' || path === undefined) return undefined
  return decoded(path)?.split('/').slice(1).reduce<unknown>((part, key) => {
    const name = key.replaceAll('~1', '/').replaceAll('~0', '~')
    return typeof part === 'object' && part !== null && Object.hasOwn(part, name)
      ? (part as Record<string, unknown>)[name]
      : undefined
  }, root)
}

/** A text with its percent-encoded characters; undefined if it encodes none. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Whether two values are the same JSON, whatever the order of their keys. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, n) => same(item, b[n]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => key in b && same(a[key], b[key]))
}
