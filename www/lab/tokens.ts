// Tokens of a text, for people.
import type { Activations, Alternative, Attention, InspectedToken, Inspection } from 'tritloom'
import { count, expectFields, fields, float, list, optional, text, truth } from './fields.ts'
import { NoReport } from './report.ts'

/** A token's text, with signs for what cannot be seen. */
export const visible = (text: string): string =>
  text.replaceAll('\n', '↵\n').replaceAll('\t', '⇥').replace(/^ | $/g, '·') || '∅'

/** How much a token surprised the model, in bits; 0 of the first one. */
export const surprise = ({ logprob = 0 }: Pick<InspectedToken, 'logprob'>): number => Math.abs(logprob) / Math.LN2

/** The weights of token number `n`, of the tokens up to it. */
const rowOf = (weights: Float32Array, tokens: number, n: number): Float32Array => weights.subarray(n * tokens, n * tokens + n + 1)

/** The tokens to which token number `of` attends most, with their weights. */
export function strongest({ weights }: Attention, tokens: number, of: number, most = 8): { at: number, weight: number }[] {
  return [...rowOf(weights, tokens, of)].map((weight, at) => ({ at, weight })).sort((a, b) => b.weight - a.weight).slice(0, most)
}

/** The attention in a report: a list for each token, of its weights of the tokens up to it. The others are 0. */
interface Rows extends Omit<Attention, 'weights'> {
  rows: number[][]
}

const alternatives = list(fields<Alternative>({ id: count, text, logprob: float }))

const INSPECTION = fields<Omit<Inspection, 'attention'> & { attention?: Rows }>({
  tokens: list(fields<InspectedToken>({
    id: count, text, special: truth, logprob: optional(float), next: optional(alternatives)
  })),
  activations: optional(list(fields<Activations>({ layer: count, at: text, min: float, max: float, rms: float, notFinite: count }))),
  attention: optional(fields<Rows>({ layer: count, head: count, rows: list(list(float)) }))
})

/** An inspection as a report has it. Weights have six digits: an f32 has not many more. */
export function reportOf({ attention, ...rest }: Inspection): unknown {
  if (!attention) return rest
  const { layer, head, weights } = attention
  const rows = rest.tokens.map((_, n) =>
    Array.from(rowOf(weights, rest.tokens.length, n), weight => Number(weight.toPrecision(6))))
  return { ...rest, attention: { layer, head, rows } }
}

/** An inspection of a report. Throws `NoReport` if it is none. */
export function readInspection(content: unknown): Inspection {
  const { attention, ...rest } = expectFields<Omit<Inspection, 'attention'> & { attention?: Rows }>(content, INSPECTION)
  if (rest.tokens.length === 0) throw new NoReport('This report has no tokens.')
  if (!attention) return rest
  const { layer, head, rows } = attention
  const length = rest.tokens.length
  if (rows.length !== length || rows.some((row, n) => row.length !== n + 1)) throw new NoReport('This report lacks a part of its attention.')
  const weights = new Float32Array(length ** 2)
  for (const [n, row] of rows.entries()) weights.set(row, n * length)
  return { ...rest, attention: { layer, head, weights } }
}
