// What the benchmark measures, by its own functions: memory over many chats, and where the time
// goes.
import { soak, wasmBytes, watchBuffers } from '../../scripts/bench/page.mjs'
import { expect, failure, load, RANDOM_MODEL, test } from './harness'

test('chats that fill the context leave nothing behind in the memory of the crate or the GPU', async ({ harness: page }) => {
  await load(page, { context: 64 }, RANDOM_MODEL)
  const worker = page.workers()[0]!
  // The first chats allocate what all others use: a few are kept, each in its range of the KV cache.
  await page.evaluate(soak, 800)
  const before = await worker.evaluate(wasmBytes)
  await worker.evaluate(watchBuffers)
  const found = await page.evaluate(soak, 400)
  expect(found).toMatchObject({ tokens: 400 })
  expect(found.chats).toBeGreaterThan(5)
  expect(found.rates).toHaveLength(2)
  for (const rate of [found.first, found.last, found.lastAtFirst, ...found.rates]) expect(rate).toBeGreaterThan(0)
  expect(await worker.evaluate(wasmBytes)).toBe(before)
  // A few numbers are read back.
  expect(await worker.evaluate(() => (globalThis as unknown as { gpuBytesMade: number }).gpuBytesMade)).toBeLessThan(1024)
})

test('the result of a call is not held on to, in this thread', async ({ harness: page }) => {
  const logits = await page.evaluateHandle(async url => {
    const model = await window.ternlight.BitNet.load(url, { worker: false })
    const given = []
    for (let n = 0; n < 4; n++) given.push(new WeakRef(await model.logits(Uint32Array.of(1))))
    Object.assign(window, { model })
    return given
  }, RANDOM_MODEL)
  // The last may still be the one that the next call waits for.
  const alive = async () => {
    await page.requestGC()
    return logits.evaluate(given => given.slice(0, -1).filter(one => one.deref()).length)
  }
  await expect.poll(alive).toBe(0)
})

test('profile() gives the time of each kernel and the bandwidth of memory', async ({ shared: page }) => {
  const info = await load(page)
  const [early, late, prompt] = await page.evaluate(async () => {
    const { model } = window
    return [await model.profile(100), await model.profile(120), await model.profile(0, 32)] as const
  })
  for (const { bandwidth, kernels } of [early, late, prompt]) {
    expect(bandwidth).toBeGreaterThan(0)
    expect(bandwidth).toBe(early.bandwidth)
    for (const { kernel, calls, microseconds, bytes, gigabytesPerSecond, share } of kernels) {
      expect(info.kernels).toContain(kernel)
      expect(calls).toBeGreaterThan(0)
      expect(bytes).toBeGreaterThan(0)
      const rate = microseconds > 0 ? bytes / microseconds / 1000 : 0
      expect(gigabytesPerSecond).toBeCloseTo(rate, 6)
      expect(share).toBeCloseTo(rate / bandwidth, 6)
    }
  }
  const sum = (of: 'calls' | 'bytes', { kernels } = early) => kernels.reduce((sum, kernel) => sum + kernel[of], 0)
  expect(sum('calls')).toBe(info.dispatchesPerToken)
  expect(sum('microseconds' as 'bytes')).toBeGreaterThan(0)
  // Keys and values of 20 more positions, of 256 f16 in 8 layers.
  expect(sum('bytes', late) - sum('bytes')).toBe(20 * 2 * 256 * 2 * 8)
  expect(await failure(page, 'await model.profile(1024)')).toMatchObject({ code: 'bad-option' })
})
