// A small model of every family in the browser: its logits against those of a float64 program.
import { readFileSync } from 'node:fs'
import { expect, load, test } from './harness'

const folder = new URL('../data/models/', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8'))

interface Logits { ctx: number, first: number, list: string }
interface Model { n_vocab: number, logits: Record<string, Logits>, same_weights: string[] }

/** Tokens that are computed in the browser: on a software adapter each takes a while. */
const TOKENS = 4

/** Each file, with an expectation that begins at the first token. */
const models = Object.entries<Model>(manifest.models).flatMap(([name, model]) => {
  const [stem, { ctx }] = Object.entries(model.logits).find(([, { first }]) => first === 0)!
  return [name, ...model.same_weights].map(file => ({ file, stem, ctx, vocabulary: model.n_vocab }))
})

for (const { file, stem, ctx, vocabulary } of models) {
  test(`${file} has its logits`, async ({ shared }) => {
    const measured = manifest.measured[stem]
    const others = measured.llamacpp_vs_numpy ?? measured.bitnetcpp_vs_numpy
    const bytes = readFileSync(new URL(`${stem}.numpy.f32`, folder))
    const at = 4 * vocabulary * (TOKENS - 1)
    const expected = Array.from({ length: vocabulary }, (_, i) => bytes.readFloatLE(at + 4 * i))
    const ids: number[] = manifest.tokens.slice(0, TOKENS)
    // Files of I2_S are always computed with int8.
    const exact = measured.bitnetcpp_vs_numpy ? 1.1 * others.rms : 1e-4 * others.std_of_logits
    // The bound of int8 is for all tokens together. After a single one the logits may be further off.
    for (const [options, allowed] of [
      [{ activations: 'f32', kv: 'f32' }, exact], [{}, 1.5 * others.rms]
    ] as const) {
      await load(shared, { ...options, context: ctx, cache: 'off' }, `/tests/data/models/${file}.gguf`)
      const found = await shared.evaluate(async ids =>
        [...await window.model.logits(Uint32Array.from(ids))], ids)
      expect(found.length).toBe(vocabulary)
      const squares = found.map((logit, i) => (logit - expected[i]!) ** 2)
      const off = Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / vocabulary)
      expect(off, JSON.stringify(options)).toBeLessThanOrEqual(allowed)
    }
  })
}
