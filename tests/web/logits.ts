// The logits of a small model of every family, as a float64 program computed them.
import { readFileSync } from 'node:fs'
import { expect, load } from './harness'
import type { InPage } from './harness'
import type { LoadOptions } from '../../pkg/index.js'

const folder = new URL('../data/models/', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8'))

interface Logits { ctx: number, first: number, count: number, list: string }
interface Model { n_vocab: number, logits: Record<string, Logits>, same_weights: string[] }

/**
 * Rows from position 596 on, in a context that takes the long factors of RoPE. On a busy machine 600 tokens take more
 * than ten seconds.
 */
const LONG = 'minicpm-tq2_0.long'

/** The row that is compared if one has to do. On a software adapter each token takes a while. */
const ROW = 3

/** A file with expectations. */
export interface Case extends Logits { file: string, stem: string, vocabulary: number }

/** Each file with its expectations: those that begin at the first token, once, and the long one. */
export const cases: Case[] = Object.entries<Model>(manifest.models).flatMap(([name, model]) => {
  const all = Object.entries(model.logits)
  const expectations = all.filter(([stem], i) => i === 0 || stem === LONG)
  return [name, ...model.same_weights].flatMap(file =>
    expectations.map(([stem, logits]) => ({ file, stem, vocabulary: model.n_vocab, ...logits })))
})

/** Files of each architecture, and of I2_S and other weights where it has both, as in tests/support/families.rs. */
const OF_EACH_ARCHITECTURE = [
  'bitnet-b1.58-embd-q6_k', 'bitnet-i2_s', 'bitnet-tq2_0', 'llama-i2_s', 'llama-tq2_0', 'minicpm-tq2_0', 'qwen3-q2_0'
]

/** A case of each of these files. */
export const beginnings = OF_EACH_ARCHITECTURE.map(name => cases.find(({ file }) => file === name)!)

/** The rows that are compared: all of a case, or one. */
export const rowsOf = ({ count }: Case, whole: boolean) => whole ? { from: 0, to: count } : { from: ROW, to: ROW + 1 }

/** Loads a file and compares the logits of rows with those of the other program. */
export const expectLogits = async (page: InPage, one: Case, whole: boolean, more: LoadOptions = {}) => {
  const { file, stem, vocabulary, ctx, first, list } = one
  const rows = rowsOf(one, whole)
  const measured = manifest.measured[stem]
  const others = measured.llamacpp_vs_numpy ?? measured.bitnetcpp_vs_numpy
  const bytes = readFileSync(new URL(`${stem}.numpy.f32`, folder))
  const length = (rows.to - rows.from) * vocabulary
  const expected = Array.from({ length }, (_, i) => bytes.readFloatLE(4 * (rows.from * vocabulary + i)))
  const ids: number[] = manifest[list].slice(0, first + rows.to)
  // Files of I2_S are always computed with int8.
  const exact = measured.bitnetcpp_vs_numpy ? 1.1 * others.rms : 1e-4 * others.std_of_logits
  // The bound of int8 is for all rows together. A single one may be further off.
  for (const [options, allowed] of [
    [{ activations: 'f32', kv: 'f32' }, exact], [{}, (whole ? 1.1 : 1.5) * others.rms]
  ] as const) {
    await load(page, { ...options, ...more, context: ctx, cache: 'off' }, `/tests/data/models/${file}.gguf`)
    const found = await page.evaluate(async ({ ids, begin }) => {
      const rows: number[] = []
      for (let end = begin; end <= ids.length; end++) {
        rows.push(...await window.model.logits(Uint32Array.from(ids.slice(0, end))))
      }
      return rows
    }, { ids, begin: first + rows.from + 1 })
    expect(found.length).toBe(length)
    const squares = found.map((logit, i) => (logit - expected[i]!) ** 2)
    const off = Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / length)
    expect(off, `${file}, ${JSON.stringify(options)}`).toBeLessThanOrEqual(allowed)
  }
}
