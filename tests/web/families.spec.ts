// A small model of every family in the browser: its logits against those of a float64 program.
import { readFileSync } from 'node:fs'
import { expect, load, test } from './harness'
import type { InPage } from './harness'

const folder = new URL('../data/models/', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8'))

interface Logits { ctx: number, first: number, count: number, list: string }
interface Model { n_vocab: number, logits: Record<string, Logits>, same_weights: string[] }

/** Files of which all rows are compared: one of each architecture. */
const WHOLE = ['qwen3-q2_0', 'minicpm-tq2_0', 'llama-i2_s', 'bitnet-tq2_0', 'bitnet-b1.58-embd-q6_k']

/** The row that is compared of the others. On a software adapter each token takes a while. */
const ROW = 3

/**
 * Rows from position 596 on, in a context that takes the long factors of RoPE. On a busy machine 600 tokens take more
 * than ten seconds.
 */
const LONG = 'minicpm-tq2_0.long'

/** A file with expectations. */
interface Case extends Logits { file: string, stem: string, vocabulary: number }

/** Each file with its expectations: those that begin at the first token, once, and the long one. */
const cases: Case[] = Object.entries<Model>(manifest.models).flatMap(([name, model]) => {
  const all = Object.entries(model.logits)
  const expectations = all.filter(([stem], i) => i === 0 || stem === LONG)
  return [name, ...model.same_weights].flatMap(file =>
    expectations.map(([stem, logits]) => ({ file, stem, vocabulary: model.n_vocab, ...logits })))
})

/** Loads a file and compares the logits of rows with those of the other program. */
const compare = async (page: InPage, { file, stem, vocabulary, ctx, first, list }: Case, rows: { from: number, to: number }, whole: boolean) => {
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
    await load(page, { ...options, context: ctx, cache: 'off' }, `/tests/data/models/${file}.gguf`)
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

for (const one of cases) {
  const { file, first, count } = one
  const whole = WHOLE.includes(file)
  const rows = whole ? { from: 0, to: count } : { from: ROW, to: ROW + 1 }
  test(`${file} has its logits from position ${first + rows.from}`, ({ shared }) => compare(shared, one, rows, whole))
}

test.describe('on the CPU', () => {
  test.use({ backend: 'cpu' })
  for (const name of ['relaxed', 'simd']) {
    test(`every file has its logits, by the module ${name}`, async ({ harness }) => {
      if (name === 'simd') await harness.route(/tritloom-relaxed\.wasm/, route => route.fulfill({ body: Buffer.from('\0asm\x01\0\0\0c\x01\0', 'latin1'), contentType: 'application/wasm' }))
      await harness.evaluate(() => { window.worker = new Worker('/pkg/protocol/worker.js', { type: 'module' }) })
      for (const one of cases) await compare(harness, one, { from: 0, to: one.count }, true)
      const { kernels } = await harness.evaluate(() => window.model.info)
      expect(kernels.every(kernel => kernel.endsWith(name === 'simd' ? '/simd128' : '/relaxed-simd'))).toBe(true)
    })
  }
})
