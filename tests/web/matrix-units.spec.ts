// Matrix units, on an adapter that has none. The page fakes what a browser says of an adapter that has
// them, and emulates what they compute.
import { readFileSync } from 'node:fs'
import { expect, RANDOM_MODEL, test } from './harness'

/** A shader's text as the package has it: without indentation and comments. */
const shader = (name: string) => readFileSync(`shaders/shared/${name}.wgsl`, 'utf8')
  .replace(/^ +/gm, '').replace(/\/\/.*/g, '')
const SHADERS = { real: shader('matrix_units'), emulated: shader('matrix_units_emulated') }
const FEATURE = 'chromium-experimental-subgroup-matrix'
/** The matrices of the kernel. */
const CONFIG = { componentType: 'i8', resultComponentType: 'i32', M: 16, N: 16, K: 32 }
/** Bytes of workgroup memory, more than this adapter has. The kernel takes 36 KiB. */
const MEMORY = 48 << 10

interface Adapter {
  config?: Partial<typeof CONFIG>
  /** The results of its matrix units. Without this field, their shaders do not compile. */
  computes?: 'the products' | 'something else'
  matrixUnits?: boolean
  memory?: number
  /** Nothing but the test of the device can be read from it before it has some of the weights. */
  late?: boolean
}

/** The requests to the adapter, and the products of prompts of a model that was loaded there. */
const load = async ({ adapter, feature, memory, config, shaders: { real, emulated }, model }: {
  adapter: Adapter, feature: string, memory: number, config: object, shaders: typeof SHADERS, model: string
}) => {
  const fake = <T extends object>(proto: T, name: string, value: (own: never) => unknown) => {
    const own = Object.getOwnPropertyDescriptor(proto, name)
    Object.defineProperty(proto, name, { get() { return value(own?.get?.call(this) as never) } })
  }
  const withFeature = (own: ReadonlySet<string>) => new Set([...own, feature])
  let asked: string[] = []
  fake(GPUAdapter.prototype, 'features', withFeature)
  fake(GPUAdapterInfo.prototype, 'subgroupMatrixConfigs', () => [config])
  const { info: { subgroupMinSize: lanes } } = (await navigator.gpu.requestAdapter())!
  for (const size of ['subgroupMinSize', 'subgroupMaxSize']) fake(GPUAdapterInfo.prototype, size, () => 32)
  fake(GPUSupportedLimits.prototype, 'maxComputeWorkgroupStorageSize', () => memory)
  const { requestDevice } = GPUAdapter.prototype
  GPUAdapter.prototype.requestDevice = function (descriptor) {
    asked = [...descriptor!.requiredFeatures!]
    const requiredFeatures = asked.filter(name => name !== feature) as GPUFeatureName[]
    const requiredLimits = { ...descriptor!.requiredLimits, maxComputeWorkgroupStorageSize: 16 << 10 }
    return requestDevice.call(this, { ...descriptor, requiredFeatures, requiredLimits })
  }
  fake(GPUDevice.prototype, 'features', own => asked.includes(feature) ? withFeature(own) : own)
  const { createShaderModule } = GPUDevice.prototype
  GPUDevice.prototype.createShaderModule = function ({ code }) {
    // The adapter's own subgroups, but for the kernel of matrix units.
    if (!code.includes(real)) code = code.replace('const SUBGROUP: u32 = 32u;', `const SUBGROUP: u32 = ${lanes}u;`)
    if (adapter.computes && code.includes(real)) {
      const other = adapter.computes === 'something else' ? emulated.replace('+=', '-=') : emulated
      code = code.replace(/^enable chromium.*\n/, '').replace(real, other)
    }
    return createShaderModule.call(this, { code })
  }
  if (adapter.late) {
    const { copyBufferToBuffer } = GPUCommandEncoder.prototype
    const { mapAsync } = GPUBuffer.prototype
    const begun = new Promise<void>(resolve => {
      // Weights are copied from buffers of this name.
      GPUCommandEncoder.prototype.copyBufferToBuffer = function (...args: unknown[]) {
        if ((args[0] as GPUBuffer).label === 'upload') resolve()
        return Reflect.apply(copyBufferToBuffer, this, args)
      }
    })
    let reads = 0
    GPUBuffer.prototype.mapAsync = async function (...range) {
      // The first is of the test of the device, which comes before the upload.
      if (this.label === 'readback' && reads++ > 0) await begun
      return mapAsync.apply(this, range)
    }
  }
  const { matrixUnits } = adapter
  const gpu = { features: { software: false, packedDot: true, matrixUnits } }
  const { info } = await window.tritloom.BitNet.load(model, { backend: 'webgpu', worker: false, cache: 'off', gpu })
  return { asked, products: info.kernels.filter(kernel => kernel.startsWith('gemm_i2s')), notes: info.notes }
}

/** Names, the adapter, the kernel of prompts, and whether the matrix units fail their test. */
const rows: [string, Adapter, string, true?][] = [
  ['those of the kernel', { computes: 'the products' }, 'gemm_i2s_matrix'],
  // The upload does not wait for the test of the matrix units, which reads from the adapter.
  ['those that tell their products after the upload has begun', { computes: 'the products', late: true }, 'gemm_i2s_matrix'],
  ['those that compute something else', { computes: 'something else' }, 'gemm_i2s', true],
  ['those that do not compile', {}, 'gemm_i2s', true],
  ['those that are switched off', { computes: 'the products', matrixUnits: false }, 'gemm_i2s'],
  ['those without the memory for the kernel', { computes: 'the products', memory: 32 << 10 }, 'gemm_i2s'],
  ['those of other sizes', { computes: 'the products', config: { K: 16 } }, 'gemm_i2s']
]

for (const [what, adapter, product, fails = false] of rows) {
  test(`matrix units: ${what}`, async ({ harness }) => {
    const config = { ...CONFIG, ...adapter.config }
    const given = { adapter, feature: FEATURE, memory: adapter.memory ?? MEMORY, config, shaders: SHADERS, model: RANDOM_MODEL }
    const { asked, products, notes } = await harness.evaluate(load, given)
    expect(products).toEqual([product])
    expect(notes).toEqual(fails ? [expect.stringContaining('matrix units')] : [])
    expect(asked.includes(FEATURE)).toBe(!adapter.config)
  })
}
