// A browser compiles every variant of every kernel. It refuses barriers and subgroup operations
// behind a condition that differs between invocations. naga compiles natively and accepts them.
import { execFileSync } from 'node:child_process'
import { expect, test } from '@playwright/test'

interface Shader {
  name: string
  subgroups: boolean
  matrixUnits: boolean
  bindings: ('Uniform' | 'Read' | 'Write')[]
  source: string
}

const dump = () => {
  const args = ['run', '--quiet', '--example', 'dump_shaders']
  const output = execFileSync('cargo', args, {
    encoding: 'utf8', maxBuffer: 64 << 20, stdio: ['ignore', 'pipe', 'inherit']
  })
  return JSON.parse(output) as Shader[]
}

/**
 * The faults that the browser finds in each shader, by name. The first of each kernel also becomes a
 * pipeline, or each if `all`: a CPU adapter compiles it to machine code, which takes long.
 */
const compile = async ({ shaders, all = false }: { shaders: Shader[], all?: boolean }) => {
  const adapter = await navigator.gpu.requestAdapter()
  if (!adapter) throw new Error('this browser has no WebGPU adapter')
  const features = ['subgroups', 'chromium-experimental-subgroup-matrix'] as GPUFeatureName[]
  const requiredFeatures = features.filter(feature => adapter.features.has(feature))
  const hasMatrixUnits = requiredFeatures.includes(features[1]!)
  const { maxComputeWorkgroupStorageSize } = adapter.limits
  const requiredLimits = hasMatrixUnits ? { maxComputeWorkgroupStorageSize } : {}
  const device = await adapter.requestDevice({ requiredFeatures, requiredLimits })
  const types = { Uniform: 'uniform', Read: 'read-only-storage', Write: 'storage' } as const
  const kernels = new Set<string>()
  const compileOne = async ({ name, bindings, source }: Shader) => {
    device.pushErrorScope('validation')
    const module = device.createShaderModule({ code: source })
    const { messages } = await module.getCompilationInfo()
    const entries = bindings.map((access, binding) =>
      ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: types[access] } }))
    const bindGroupLayouts = [device.createBindGroupLayout({ entries })]
    const layout = device.createPipelineLayout({ bindGroupLayouts })
    const kernel = name.split('/')[0]!
    if (all || !kernels.has(kernel)) device.createComputePipeline({ layout, compute: { module, entryPoint: 'main' } })
    kernels.add(kernel)
    const invalid = await device.popErrorScope()
    return [
      ...messages
        .filter(({ type }) => type !== 'info')
        .map(({ lineNum, message }) => `line ${lineNum}: ${message}`),
      ...(invalid ? [invalid.message] : [])
    ]
  }
  const faults: Record<string, string[]> = {}
  for (const shader of shaders.filter(({ matrixUnits }) => hasMatrixUnits || !matrixUnits)) {
    const found = await compileOne(shader)
    if (found.length > 0) faults[shader.name] = found
  }
  device.destroy()
  return { subgroups: adapter.features.has(features[0]!), faults }
}

for (const all of [false, true]) {
  const title = all ? 'every variant of every kernel becomes a pipeline' : 'every variant of every kernel compiles, and a variant of each becomes a pipeline'
  test(title, all ? { tag: '@all' } : {}, async ({ page }) => {
    test.setTimeout(600_000)
    const shaders = dump()
    expect(shaders.length).toBeGreaterThan(20)
    await page.goto('/tests/web/harness.html')
    const { subgroups, faults } = await page.evaluate(compile, { shaders, all })
    expect(subgroups, 'a browser without subgroups leaves variants uncompiled').toBe(true)
    expect(faults).toEqual({})
  })
}

test('a fault in a shader is found', async ({ page }) => {
  const [shader] = dump() as [Shader]
  const broken = { ...shader, source: shader.source.replace('fn main(', 'fn other(') }
  const uneven = {
    ...shader,
    name: 'uneven',
    source: `var<workgroup> x: u32;
      @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) lane: u32) {
        if lane < 32u { x = 1u; workgroupBarrier(); }
      }`
  }
  await page.goto('/tests/web/harness.html')
  const { faults } = await page.evaluate(compile, { shaders: [broken, uneven] })
  expect(Object.keys(faults)).toEqual([shader.name, 'uneven'])
})
