// Embeddings in a browser, on the GPU and on the CPU: vectors of another program. How they are computed is in
// tests/session/embed.rs.
import { expectVectors, MODELS } from './embeddings'
import { expect, failure, load, test } from './harness'

for (const backend of ['webgpu', 'cpu'] as const) {
  test.describe(`on the ${backend}`, () => {
    test.use({ backend })
    test('every file has its vectors', async ({ shared: page }) => {
      for (const name of MODELS) await expectVectors(page, name)
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
  // Those that ask for its template say so too.
  for (const call of [
    `generate('a', { raw: true }).text()`, `generate('a', { tools: [{ name: 'f' }] }).text()`, `createChat({ overflow: 'slide' }).send('a').text()`,
    `countTokens([{ role: 'user', content: 'a' }])`, `summarize('a').text()`
  ]) expect(await failure(page, `await window.model.${call}`), call).toMatchObject({ code: 'embedding-model' })
})

test('dispose() ends an embedding in the page\'s own thread', async ({ harness }) => {
  const found = await harness.evaluate(async url => {
    const submitted = new Map<GPUQueue, number>()
    const { submit } = GPUQueue.prototype
    GPUQueue.prototype.submit = function (buffers) {
      submitted.set(this, (submitted.get(this) ?? 0) + 1)
      return submit.call(this, buffers)
    }
    const options = { worker: false, cache: 'off' } as const
    const model = await window.load(url, options)
    const texts = Array.from({ length: 100 }, () => Uint32Array.from({ length: 64 }, (_, n) => n + 1))
    let begin!: () => void
    const begun = new Promise<void>(resolve => { begin = resolve })
    const code = model.embed(texts, { onProgress: begin }).then(() => 'none', (error: { code: string }) => error.code)
    await begun
    const [[queue] = []] = submitted
    await model.dispose()
    const said = await code
    const before = submitted.get(queue!)
    // Another model waits for its passes one after the other. Those of the first would come in between.
    const other = await window.load(url, options)
    await other.embed(texts.slice(0, 8))
    return { said, hasBegun: before! > 0, more: submitted.get(queue!)! - before! }
  }, '/tests/data/embed/qwen3-embd-q2_0.gguf')
  expect(found).toEqual({ said: 'disposed', hasBegun: true, more: 0 })
})
