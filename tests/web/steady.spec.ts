// The figures of the benchmark, by its own functions: memory over many chats, and where the time
// goes.
import { soak, wasmBytes, watchBuffers } from '../../scripts/bench/page.mjs'
import { expect, failure, load, MIB, RANDOM_MODEL, test } from './harness'

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

/** In a worker: what its calls have made on the GPU, from the message that asks to the first token. */
type Counting = { madeBeforeFirst: number[], made: number, grown: Promise<unknown>[] }

function countWhatIsMade() {
  const found: Counting = { madeBeforeFirst: [], made: 0, grown: [] }
  let atCall: number | undefined
  const wrap = (proto: object, name: string, before: (result: unknown, ...args: unknown[]) => void) => {
    const all = proto as Record<string, (...args: unknown[]) => unknown>
    const original = all[name]!
    all[name] = function (...args) {
      const result = original.apply(this, args)
      before(result, ...args)
      return result
    }
  }
  for (const name of ['createBuffer', 'createBindGroup', 'createShaderModule', 'createComputePipeline']) {
    wrap(GPUDevice.prototype, name, () => { found.made++ })
  }
  wrap(GPUDevice.prototype, 'popErrorScope', popped => found.grown.push(popped as Promise<unknown>))
  addEventListener('message', ({ data }) => { if (data.method === 'generate') atCall = found.made })
  wrap(globalThis, 'postMessage', (_, message) => {
    if ((message as { kind: string }).kind !== 'item' || atCall === undefined) return
    found.madeBeforeFirst.push(found.made - atCall)
    atCall = undefined
  })
  Object.assign(globalThis, { found })
}

test('the first answers after a load find all that they need: the KV cache grows while no call waits', async ({ harness: page }) => {
  await load(page, { context: 64 }, RANDOM_MODEL)
  const worker = page.workers()[0]!
  await worker.evaluate(countWhatIsMade)
  for (let run = 0; run < 12; run++) {
    await page.evaluate(async run => {
      const prompt = Uint32Array.from({ length: 16 }, (_, i) => (i * 31 + run * 97 + 1) % window.model.info.vocabSize)
      await window.model.generate(prompt, { maxTokens: 8 }).text()
    }, run)
    // The work that the answer left is done when the device has agreed to it.
    await worker.evaluate(async () => {
      await Promise.all((globalThis as unknown as { found: Counting }).found.grown)
      await new Promise(resolve => setTimeout(resolve))
    })
  }
  const found = await worker.evaluate(() => {
    const { madeBeforeFirst, made } = (globalThis as unknown as { found: Counting }).found
    return { madeBeforeFirst, made }
  })
  expect(found.madeBeforeFirst).toEqual(Array(12).fill(0))
  expect(found.made).toBeGreaterThan(0)
})

test('models that were disposed of leave nothing behind in the memory of the crate', async ({ shared: page }) => {
  const loads = (count: number) => page.evaluate(async ([url, count]) => {
    for (let n = 0; n < count; n++) {
      const model = await window.tritloom.BitNet.load(url, { backend: 'webgpu', worker: false, context: 64 })
      // The answer is complete before what it left to do is done: the KV cache grows.
      await model.generate(Uint32Array.of(1, 2, 3), { maxTokens: 1 }).text()
      await model.logits(Uint32Array.of(1))
      await model.dispose()
    }
  }, [RANDOM_MODEL, count] as const)
  await loads(4)
  const before = await page.evaluate(wasmBytes)
  await loads(8)
  expect(await page.evaluate(wasmBytes)).toBeLessThan(before + MIB)
})

test('the result of a call is not held on to, in this thread', async ({ harness: page }) => {
  const logits = await page.evaluateHandle(async url => {
    const model = await window.tritloom.BitNet.load(url, { backend: 'webgpu', worker: false })
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
  const drawn = await page.evaluate(async () => (await window.model.profile(100, 1, { temperature: 0.7, topK: 40 })).kernels)
  expect(drawn.map(({ kernel }) => kernel)).toContain('sample_sift')
  expect(early.kernels.map(({ kernel }) => kernel)).not.toContain('sample_sift')
})
