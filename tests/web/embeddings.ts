// Vectors of embedding models in any browser, compared with another program's.
import { readFileSync } from 'node:fs'
import { expect } from '@playwright/test'
import { load } from './harness'
import type { InPage } from './harness'

const folder = new URL('../data/embed/', import.meta.url)
const { sequences, models } = JSON.parse(readFileSync(new URL('tokens.json', folder), 'utf8'))
const WIDTH = 256

/** The names of the files. */
export const MODELS = Object.keys(models)

/** Loads a file, and compares its vectors, made with each pooling in one call, with another program's. */
export async function expectVectors(page: InPage, name: string) {
  await load(page, { cache: 'off' }, `/tests/data/embed/${name}.gguf`)
  for (const [file, { pooling, act }] of Object.entries<{ pooling: 'mean' | 'cls' | 'last', act: string }>(models[name].files)) {
    // Files of I2_S are always computed with int8.
    if ((act === 'int8') !== name.endsWith('i2_s')) continue
    const bytes = readFileSync(new URL(file, folder))
    const found = await page.evaluate(async ({ sequences, pooling }) => {
      const vectors = await window.model.embed(sequences.map((ids: number[]) => Uint32Array.from(ids)), { pooling })
      return vectors.map(vector => [...vector])
    }, { sequences, pooling })
    expect(found.length).toBe(sequences.length)
    for (const [row, vector] of found.entries()) {
      const cosine = vector.reduce((sum, value, n) => sum + value * bytes.readFloatLE(4 * (WIDTH * row + n)), 0)
      expect(cosine, `${file}, ${row}`).toBeGreaterThan(0.999)
      expect(Math.hypot(...vector)).toBeCloseTo(1, 5)
    }
  }
}
