// The units and the cities that the page knows.

interface Unit {
  /** Units of one kind can be converted. */
  kind: string
  /** The amount in the first unit of the kind. */
  toBase: (amount: number) => number
  fromBase: (amount: number) => number
}

const times = (kind: string, factor: number): Unit => ({
  kind, toBase: amount => amount * factor, fromBase: amount => amount / factor
})

const UNITS: Readonly<Record<string, Unit>> = {
  'km': times('length', 1),
  'miles': times('length', 1.609344),
  'kg': times('mass', 1),
  'pounds': times('mass', 0.45359237),
  '°C': times('temperature', 1),
  '°F': {
    kind: 'temperature', toBase: amount => (amount - 32) / 1.8, fromBase: amount => amount * 1.8 + 32
  }
}

export const UNIT_NAMES: readonly string[] = Object.keys(UNITS)

/** Throws an error for people if the units are of different kinds. */
export function convert(amount: number, from: string, to: string): number {
  const [source, target] = [UNITS[from], UNITS[to]]
  if (!source || !target) throw new Error(`There is no unit ${source ? to : from}.`)
  if (source.kind !== target.kind) throw new Error(`${from} and ${to} cannot be converted: one is a ${source.kind}, the other a ${target.kind}.`)
  return target.fromBase(source.toBase(amount))
}

/** A sentence such as `42 km are 26.1 miles.` */
export function describeConversion(amount: number, from: string, to: string): string {
  const result = Number(convert(amount, from, to).toPrecision(4))
  return `${amount.toLocaleString('en')} ${from} are ${result.toLocaleString('en', { maximumFractionDigits: 6 })} ${to}.`
}

const ZONES: Readonly<Record<string, string>> = {
  'London': 'Europe/London',
  'New York': 'America/New_York',
  'Nairobi': 'Africa/Nairobi',
  'Tokyo': 'Asia/Tokyo',
  'Sydney': 'Australia/Sydney'
}

export const CITIES: readonly string[] = Object.keys(ZONES)

/** The time in a city, such as `Sat 14:05:09`. */
export function timeIn(city: string, now = new Date()): string {
  const form = { timeZone: ZONES[city], weekday: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const
  return new Intl.DateTimeFormat('en', form).format(now)
}
