// Tokens of a text, for people.
import type { Attention, InspectedToken, Inspection } from 'tritloom'
import { NoReport } from './report.ts'

/** A token's text with signs for what cannot be seen. */
export const shown = (text: string): string =>
  text.replaceAll('\n', '↵\n').replaceAll('\t', '⇥').replace(/^ | $/g, '·') || '∅'

/** How much a token surprised the model, in bits; 0 of the first one. */
export const surprise = ({ logprob = 0 }: Pick<InspectedToken, 'logprob'>): number => Math.abs(logprob) / Math.LN2

/** The tokens to which token number `of` attends most, with their weights. */
export function strongest({ weights }: Attention, tokens: number, of: number, most = 8): { at: number, weight: number }[] {
  const row = weights.subarray(of * tokens, of * tokens + of + 1)
  return [...row].map((weight, at) => ({ at, weight })).sort((a, b) => b.weight - a.weight).slice(0, most)
}

/** An inspection of a report. Throws `NoReport` if it is none. */
export function readInspection(content: unknown): Inspection {
  const { tokens, activations, attention } = content as Inspection
  if (!Array.isArray(tokens) || !tokens.every(({ id, text }) => typeof id === 'number' && typeof text === 'string')) {
    throw new NoReport('This report lacks its tokens.')
  }
  if (attention && attention.weights?.length !== tokens.length ** 2) throw new NoReport('This report lacks a part of its attention.')
  return {
    tokens,
    ...(activations && { activations }),
    ...(attention && { attention: { ...attention, weights: Float32Array.from(attention.weights) } })
  }
}
