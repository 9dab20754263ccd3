// Embeddings in a browser, on the GPU and on the CPU: vectors of another program. How they are computed is in
// tests/session/embed.rs.
import { readFileSync } from 'node:fs'
import { expect, failure, load, test } from './harness'
import type { InPage } from './harness'

const folder = new URL('../data/embed/', import.meta.url)
const { sequences, models } = JSON.parse(readFileSync(new URL('tokens.json', folder), 'utf8'))
const WIDTH = 256

/** Compares the vectors of a file, made with each pooling in one call, with another program's. */
const compare = async (page: InPage, name: string) => {
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

for (const backend of ['webgpu', 'cpu'] as const) {
  test.describe(`on the ${backend}`, () => {
    test.use({ backend })
    test('every file has its vectors', async ({ shared: page }) => {
      for (const name of Object.keys(models)) {
        await load(page, { cache: 'off' }, `/tests/data/embed/${name}.gguf`)
        await compare(page, name)
      }
    })
  })
}

test('an abort ends a call within a hundred thousand texts, and the model goes on', async ({ shared: page }) => {
  await load(page, { cache: 'off' }, '/tests/data/embed/qwen3-embd-q2_0.gguf')
  const { why, done, next } = await page.evaluate(async () => {
    const { model } = window
    const stop = new AbortController()
    let done = 0
    const onProgress = (progress: { done: number }) => {
      done = progress.done
      if (done > 256) stop.abort(new Error('enough'))
    }
    const texts = Array.from({ length: 100_000 }, (_, n) => `${n % 10}`)
    const why = await model.embed(texts, { signal: stop.signal, onProgress }).then(() => 'none', (error: Error) => error.message)
    return { why, done, next: (await model.embed(['a'])).length }
  })
  expect([why, done < 100_000, next]).toEqual(['enough', true, 1])
  expect(await failure(page, `await window.model.generate('a', { raw: true }).text()`)).toMatchObject({ code: 'embedding-model' })
})
