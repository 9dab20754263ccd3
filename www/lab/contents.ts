// The contents of a file, as far as they were read. A report has them too.
import type { FileTensor, NumberSpread, TensorStatistics } from 'tritloom/weights'
import { count, expectFields, fields, float, list, optional, text } from './fields.ts'

/** A tensor with what it holds, if that was read. */
export interface ReadTensor extends FileTensor {
  found?: TensorStatistics
}

/** A file and its tensors. */
export interface Contents {
  name: string
  architecture: string
  bytes: number
  tensors: ReadTensor[]
}

const spread = optional(fields<NumberSpread>({ count, min: float, max: float, mean: float }))

const CONTENTS = fields<Contents>({
  name: text,
  architecture: text,
  bytes: count,
  tensors: list(fields<ReadTensor>({
    name: text, type: text, shape: list(count), bytes: count, layer: optional(count),
    found: optional(fields<TensorStatistics>({ counts: optional(list(count, 3)), entropy: optional(float), scales: spread, offsets: spread }))
  }))
})

/** The contents in a report. Throws `NoReport` if it has none. */
export const readContents = (content: unknown): Contents => expectFields<Contents>(content, CONTENTS)
