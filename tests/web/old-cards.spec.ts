// Adapters that can do no more than WebGPU demands, or less.
// `tests/engine/families.rs` runs every family on the lowest limits.
import { expect, test } from './harness'
import { beginnings, expectLogits } from './logits'

/** The lowest limits that WebGPU allows, of those that concern kernels. */
const LOWEST = {
  maxBufferSize: 256 << 20,
  maxStorageBufferBindingSize: 128 << 20,
  maxStorageBuffersPerShaderStage: 8,
  maxUniformBufferBindingSize: 64 << 10,
  maxComputeWorkgroupStorageSize: 16 << 10,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupSizeY: 256,
  maxComputeWorkgroupsPerDimension: 65535
}

/** The kernels of a card: those of a CPU take less. */
const CARD = { worker: false, gpu: { features: { software: false, packedDot: true } } }

// The browser checks every kernel against the limits of its device.
test('the lowest limits and no features are enough', async ({ harness }) => {
  await harness.evaluate(lowest => {
    for (const [name, limit] of Object.entries(lowest))
      Object.defineProperty(GPUSupportedLimits.prototype, name, { get: () => limit })
    Object.defineProperty(GPUAdapter.prototype, 'features', { get: () => new Set() })
    const { requestDevice } = GPUAdapter.prototype
    GPUAdapter.prototype.requestDevice = async function ({ requiredFeatures = [], requiredLimits = {}, ...descriptor } = {}) {
      const above = Object.entries(lowest).filter(([name, limit]) => (requiredLimits[name] ?? 0) > limit)
      if ([...requiredFeatures].length + above.length > 0) throw new Error(`asked for ${[...requiredFeatures, ...above]}`)
      return requestDevice.call(this, descriptor)
    }
  }, LOWEST)
  for (const one of beginnings.filter(({ file }) => ['llama-i2_s', 'qwen3-q2_0'].includes(file)))
    await expectLogits(harness, one, false, CARD)
  const { kernels } = await harness.evaluate(() => window.model.info)
  expect(kernels.filter(kernel => kernel.includes('subgroup'))).toEqual([])
})

// Each architecture compiles kernels of its own, and SwiftShader takes them as OpenGL ES here.
test('an adapter in compatibility mode is taken where there is no other, and gives each architecture’s logits', async ({ playwright, baseURL }) => {
  const { executablePath, args } = test.info().project.use.launchOptions!
  const flags = ['--use-webgpu-adapter=opengles', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader']
  const browser = await playwright.chromium.launch({ executablePath: executablePath!, args: [...args!, ...flags] })
  try {
    const page = await browser.newPage({ baseURL: baseURL! })
    await page.goto('/tests/web/harness.html')
    await page.waitForFunction(() => window.tritloom)
    await page.evaluate(() => {
      const { requestAdapter } = GPU.prototype
      GPU.prototype.requestAdapter = async function (options) {
        return options?.featureLevel === 'compatibility' ? requestAdapter.call(this, options) : null
      }
    })
    const { backends, features } = await page.evaluate(() => window.tritloom.BitNet.availability())
    expect(backends.webgpu.available).toBe(true)
    expect(features).not.toContain('core-features-and-limits')
    for (const one of beginnings) await expectLogits(page, one, false, { worker: false })
  } finally {
    await browser.close()
  }
})
