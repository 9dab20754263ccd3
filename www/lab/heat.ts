// Figures of the tensors over the layers of a model.
import type { TensorStatistics } from 'tritloom/weights'
import type { ReadTensor } from './contents.ts'

/** A figure of a tensor; `undefined` if it has none. */
export interface Measure {
  title: string
  of(found: TensorStatistics): number | undefined
}

/** The share of one of -1, 0 and +1. */
export const shareOf = ({ counts }: TensorStatistics, which: 0 | 1 | 2): number | undefined =>
  counts && counts[which] / (counts[0] + counts[1] + counts[2])

export const MEASURES: Measure[] = [
  { title: 'Share of 0', of: found => shareOf(found, 1) },
  { title: 'Share of −1', of: found => shareOf(found, 0) },
  { title: 'Share of +1', of: found => shareOf(found, 2) },
  { title: 'Entropy, bits a weight', of: ({ entropy }) => entropy },
  { title: 'Mean scale', of: ({ scales }) => scales?.mean },
  { title: 'Greatest scale', of: ({ scales }) => scales?.max }
]

/** Figures of all layers, with a row for each role, such as `attn_q`. */
export interface HeatMap {
  layers: number[]
  rows: { role: string, values: (number | undefined)[] }[]
  /** The least and the greatest value; equal if there is none. */
  range: [least: number, greatest: number]
}

/** The figures of the tensors of layers, for those roles that have any. */
export function heatMap(tensors: readonly ReadTensor[], { of }: Measure): HeatMap {
  const roles = new Map<string, Map<number, number>>()
  for (const { name, layer, found } of tensors) {
    const value = found && of(found)
    if (layer === undefined || value === undefined) continue
    const role = name.replace(/^blk\.\d+\.|\.weight$/g, '')
    const values = roles.get(role) ?? new Map<number, number>()
    roles.set(role, values.set(layer, value))
  }
  const layers = [...new Set([...roles.values()].flatMap(values => [...values.keys()]))].sort((a, b) => a - b)
  const all = [...roles.values()].flatMap(values => [...values.values()])
  return {
    layers,
    rows: [...roles].map(([role, values]) => ({ role, values: layers.map(layer => values.get(layer)) })),
    range: all.length > 0 ? [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))] : [0, 0]
  }
}

/** Where a value is in a range, from 0 to 1. */
export const within = (value: number, [least, greatest]: HeatMap['range']): number =>
  greatest > least ? (value - least) / (greatest - least) : 0
