// Checks of the fields of a report, which may come from anywhere.
import { NoReport } from './report.ts'

/** Says what is wrong with a value, after its name: ` is no number`. Undefined if nothing is. */
export type Check = (value: unknown) => string | undefined

const check = (is: (value: unknown) => boolean, what: string): Check => value => is(value) ? undefined : ` is no ${what}`

export const text = check(value => typeof value === 'string', 'text')
export const truth = check(value => typeof value === 'boolean', 'truth value')
/** A number that is finite. */
export const number = check(Number.isFinite, 'number')
/** A number that a model or a file gave, which may be NaN or infinite. */
export const float = check(value => typeof value === 'number', 'number')
/** A whole number from 0 on. */
export const count = check(value => Number.isSafeInteger(value) && (value as number) >= 0, 'whole number')

export const optional = (of: Check): Check => value => value === undefined ? undefined : of(value)
export const orNull = (of: Check): Check => value => value === null ? undefined : of(value)

export const list = (of: Check, length?: number): Check => value => {
  if (!Array.isArray(value)) return ' is no list'
  if (length !== undefined && value.length !== length) return ` does not have ${length} entries`
  for (const [n, entry] of value.entries()) {
    const wrong = of(entry)
    if (wrong) return `[${n}]${wrong}`
  }
  return undefined
}

/** An object with these fields. */
export const fields = <T extends object>(of: { [Name in keyof T]-?: Check }): Check => value => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return ' is no object'
  for (const [name, one] of Object.entries<Check>(of)) {
    const wrong = one((value as Record<string, unknown>)[name])
    if (wrong) return `.${name}${wrong}`
  }
  return undefined
}

/** The content of a report, if it is as `of` says. Throws `NoReport` if it is not. */
export function expectFields<T>(content: unknown, of: Check): T {
  const wrong = of(content)
  if (wrong) throw new NoReport(`This report is damaged: content${wrong}.`)
  return content as T
}
