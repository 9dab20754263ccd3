// Drivers that compile shaders wrong: a page changes their text. A load tests what the adapter computes, and does
// without what is wrong.
import { continuation, expect, expectedIds, failure, GOLDEN_MODEL, goldens, load, test } from './harness'

const ONCE = goldens.find(({ name }) => name === 'once')!

/** Words of shaders, and those that they are compiled as. */
const SUBGROUPS: [string, string] = ['quadSwapX(', 'quadSwapY(']
const PACKED_DOT: [string, string] = ['dot4I8Packed(', '-dot4I8Packed(']
/** All kernels of a norm have it. */
const NORMS: [string, string] = ['inverseSqrt(', 'sqrt(']

/** Compiles words as others. */
const miscompile = (changes: [string, string][]) => {
  const { createShaderModule } = GPUDevice.prototype
  GPUDevice.prototype.createShaderModule = function (descriptor) {
    const code = changes.reduce((code, [word, other]) => code.replaceAll(word, other), descriptor.code)
    return createShaderModule.call(this, { ...descriptor, code })
  }
}

for (const [what, changes, note, lacks] of [
  ['subgroup operations', [SUBGROUPS], /s subgroup operations are wrong/, { subgroups: true, packedDot: false }],
  ['products of four int8 values', [PACKED_DOT], /s products of four int8 values at once are wrong/, { subgroups: false, packedDot: true }],
  ['both', [SUBGROUPS, PACKED_DOT], /without both/, { subgroups: true, packedDot: true }]
] as const) {
  test(`a model gives its golden text without ${what} that a driver compiles wrong`, async ({ harness }) => {
    await harness.evaluate(miscompile, changes.map(change => [...change] as [string, string]))
    const { kernels, notes } = await load(harness, { worker: false }, GOLDEN_MODEL)
    expect(notes).toEqual([expect.stringMatching(note)])
    expect({
      subgroups: kernels.every(kernel => !kernel.includes('subgroup')),
      packedDot: kernels.some(kernel => kernel.includes('no-packed-dot'))
    }).toEqual(lacks)
    expect((await continuation(harness, ONCE)).ids).toEqual(expectedIds(ONCE))
  })
}

test('a GPU that computes nothing right is no GPU', async ({ harness }) => {
  await harness.evaluate(miscompile, [NORMS])
  expect(await failure(harness, `await load('${GOLDEN_MODEL}', { worker: false })`)).toEqual({
    code: 'no-adapter', message: expect.stringContaining('computes wrong numbers')
  })
  // A GPU that a page takes for a card is left for the CPU.
  const { backend, notes } = await load(harness, { worker: false, backend: 'auto', gpu: { features: { software: true } } }, GOLDEN_MODEL)
  expect(backend).toBe('cpu')
  expect(notes).toEqual([expect.stringContaining('computes wrong numbers')])
})

test('a GPU that is lost in the middle of its test is no wrong one, and an aborted load ends its device', async ({ harness }) => {
  const found = await harness.evaluate(async url => {
    const { requestDevice } = GPUAdapter.prototype
    let device: GPUDevice
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
      device = await requestDevice.call(this, descriptor)
      return device
    }
    const { mapAsync } = GPUBuffer.prototype
    // The test is the first that reads from the device.
    const loadAnd = async (disturb: () => void, signal?: AbortSignal) => {
      GPUBuffer.prototype.mapAsync = function (...range) {
        GPUBuffer.prototype.mapAsync = mapAsync
        disturb()
        return mapAsync.apply(this, range)
      }
      const loading = window.tritloom.BitNet.load(url, { backend: 'webgpu', worker: false, cache: 'off', signal })
      const why = await loading.then(() => 'loaded', error => error.code ?? error.message)
      return [why, (await device.lost).reason]
    }
    const abort = new AbortController()
    return [
      await loadAnd(() => device.destroy()),
      await loadAnd(() => abort.abort(new Error('changed my mind')), abort.signal)
    ]
  }, GOLDEN_MODEL)
  expect(found).toEqual([['device-lost', 'destroyed'], ['changed my mind', 'destroyed']])
})
