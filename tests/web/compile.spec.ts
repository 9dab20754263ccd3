// When kernels are compiled: those of a first answer at the load, the others behind it, one at a time.
import { expect, failure, RANDOM_MODEL, test } from './harness'
import type { Page } from '@playwright/test'

interface Kernels {
  /** Their names, in the order in which they were asked for. */
  asked: string[]
  /** How many are being compiled, and the most at a time since `most` was last set. */
  open: number
  most: number
  /** The next one that is asked for is held back until `release`. */
  hold: boolean
  release(): void
  /** Its name, once it is held back. */
  held: Promise<string>
  /** The name of one that does not compile. */
  broken?: string
}

declare global {
  interface Window { kernels: Kernels }
}

/** Watches what this page's devices compile. */
const watch = (page: Page) => page.evaluate(() => {
  let [tell, release] = [(_: string) => {}, () => {}]
  const held = new Promise<string>(resolve => { tell = resolve })
  const released = new Promise<void>(resolve => { release = resolve })
  const kernels: Kernels = { asked: [], open: 0, most: 0, hold: false, release, held }
  window.kernels = kernels
  const { createComputePipelineAsync, createComputePipeline } = GPUDevice.prototype
  const seen = (descriptor: GPUComputePipelineDescriptor) =>
    descriptor.label === kernels.broken ? { ...descriptor, compute: { ...descriptor.compute, entryPoint: 'none' } } : descriptor
  GPUDevice.prototype.createComputePipelineAsync = async function (descriptor) {
    kernels.asked.push(descriptor.label!)
    kernels.most = Math.max(kernels.most, ++kernels.open)
    try {
      if (kernels.hold) {
        kernels.hold = false
        tell(descriptor.label!)
        await released
      }
      return await createComputePipelineAsync.call(this, seen(descriptor))
    } finally {
      kernels.open--
    }
  }
  GPUDevice.prototype.createComputePipeline = function (descriptor) {
    return createComputePipeline.call(this, seen(descriptor))
  }
})

/** Waits until nothing more is compiled. */
const settled = async (page: Page) => {
  let before = -1
  await expect.poll(async () => {
    const last = before
    const { asked, open } = await page.evaluate(() => window.kernels)
    before = asked.length
    return open === 0 && before === last
  }, { timeout: 60_000, intervals: [500] }).toBe(true)
}

test('a load compiles what a greedy answer needs, all at once; the others come behind it, one at a time', async ({ harness: page }) => {
  await watch(page)
  const [first, most] = await page.evaluate(async url => {
    window.model = await window.tritloom.BitNet.load(url, { backend: 'webgpu', worker: false, context: 64 })
    const { asked, most } = window.kernels
    window.kernels.most = 0
    return [[...asked], most] as const
  }, RANDOM_MODEL)
  const others = ['penalize', 'sample_sift', 'logprob_record', 'take_logits', 'best_of_each']
  expect(most).toBeGreaterThan(5)
  expect(first).toContain('sample_commit')
  expect(first.filter(name => others.includes(name))).toEqual([])
  await settled(page)
  const { asked, most: later } = await page.evaluate(() => window.kernels)
  expect(asked).toEqual(expect.arrayContaining(others))
  expect(later).toBe(1)
})

test('while kernels are compiled, a call waits only for its own, which are compiled together; disposing waits for none', async ({ harness: page }) => {
  await watch(page)
  const answers = await page.evaluate(async url => {
    const { BitNet } = window.tritloom
    const model = await BitNet.load(url, { backend: 'webgpu', worker: false, context: 64 })
    window.kernels.hold = true
    await window.kernels.held
    const options = { maxTokens: 4, repeatPenalty: 1.3, temperature: 0.8, topK: 9, seed: 5, logprobs: 2 }
    const answer = () => model.generate(Uint32Array.of(1, 2, 3), options).text()
    window.kernels.most = 0
    const first = await answer()
    const { most } = window.kernels
    await model.dispose()
    window.kernels.release()
    await new Promise(resolve => setTimeout(resolve, 200))
    const other = await BitNet.load(url, { backend: 'webgpu', worker: false, context: 64 })
    const again = await other.generate(Uint32Array.of(1, 2, 3), options).text()
    await other.dispose()
    return { first, again, most }
  }, RANDOM_MODEL)
  expect(answers.first).toBe(answers.again)
  // The one that is held back, and several more.
  expect(answers.most).toBeGreaterThan(2)
})

test('a kernel that does not compile fails the call that needs it, and no other', async ({ harness: page }) => {
  await watch(page)
  const text = await page.evaluate(async url => {
    window.kernels.broken = 'penalize'
    window.model = await window.tritloom.BitNet.load(url, { backend: 'webgpu', worker: false, context: 64 })
    return window.model.generate(Uint32Array.of(1, 2, 3), { maxTokens: 4 }).text()
  }, RANDOM_MODEL)
  expect(text).not.toBe('')
  await settled(page)
  expect(await page.evaluate(() => window.model.generate(Uint32Array.of(1, 2, 3), { maxTokens: 4 }).text())).toBe(text)
  const found = await failure(page, 'await model.generate(Uint32Array.of(1, 2, 3), { maxTokens: 4, repeatPenalty: 1.3, logprobs: 1 }).text()')
  expect(found).toMatchObject({ code: 'internal', message: expect.stringContaining('penalize') })
})
