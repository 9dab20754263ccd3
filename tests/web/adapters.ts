// Logits of models with adapters in any browser, compared with another program's.
import { readFileSync } from 'node:fs'
import { expect } from '@playwright/test'
import { load } from './harness'
import type { InPage } from './harness'

interface Base { ctx: number, n_vocab: number, runs: Record<string, { adapters: [name: string, scale: number][] }> }

const folder = new URL('../data/lora/', import.meta.url)
const { tokens, bases } = JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8')) as { tokens: number[], bases: Record<string, Base> }

/** The names of the models' files. */
export const BASES = Object.keys(bases)

/** Loads a model once, and compares the logits after the last token with each set of adapters, and without any. */
export async function expectAdapted(page: InPage, base: string) {
  const { ctx, n_vocab, runs } = bases[base]!
  await load(page, { context: ctx, activations: 'f32', kv: 'f32', cache: 'off' }, `/tests/data/models/${base}.gguf`)
  const all = await page.evaluate(async ({ tokens, runs }) => {
    const { model } = window
    const ids = Uint32Array.from(tokens)
    const loaded = new Map<string, Awaited<ReturnType<typeof model.loadAdapter>>>()
    const found: number[][] = [[...await model.logits(ids)]]
    for (const adapters of runs) {
      const applied = []
      for (const [name, scale] of adapters) {
        const adapter = loaded.get(name) ?? await model.loadAdapter(`/tests/data/lora/${name}.gguf`)
        loaded.set(name, adapter)
        applied.push({ adapter, scale })
      }
      await model.setAdapters(applied)
      found.push([...await model.logits(ids)])
    }
    await model.setAdapters([])
    found.push([...await model.logits(ids)])
    return found
  }, { tokens, runs: Object.values(runs).map(({ adapters }) => adapters) })
  const [alone, ...rest] = all
  expect(rest.pop()).toEqual(alone)
  // The inputs of I2_S are int8 in any case. One row scatters more than all.
  const allowed = base.startsWith('bitnet') ? 0.03 : 4e-3
  for (const [n, name] of Object.keys(runs).entries()) {
    const bytes = readFileSync(new URL(`${name}.numpy.f32`, folder))
    const at = (tokens.length - 1) * n_vocab
    const expected = Array.from({ length: n_vocab }, (_, i) => bytes.readFloatLE(4 * (at + i)))
    const mean = expected.reduce((sum, value) => sum + value, 0) / n_vocab
    const square = (values: number[]) => values.reduce((sum, value) => sum + value ** 2, 0)
    const off = Math.sqrt(square(rest[n]!.map((value, i) => value - expected[i]!)) / square(expected.map(value => value - mean)))
    expect(off, name).toBeLessThan(allowed)
  }
}
