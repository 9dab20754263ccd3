// GPUs with little: matrices in many shards, and memory that runs out.
import { readFileSync } from 'node:fs'
import { expectStoresLayers, expectStreams } from './elsewhere'
import { bundledGoldens, expect, MIB, MODEL, RANDOM_MODEL, test } from './harness'

/** The largest tensor is the embedding: 4096 tokens of 512 values in f16. */
const EMBEDDING = 4096 * 512 * 2
/** Each of them depends on every shard. */
const TOKENS = 8

// Over ten seconds: the bundled model is loaded with three sets of limits, each on a device that
// compiles the kernels. Smaller models have no matrices of several shards.
test('the first tokens are the golden ones with every large matrix in shards', async ({ shared }) => {
  const golden = bundledGoldens.prompts.find(({ name }) => name === 'who')!
  const generate = (limits: object) => shared.evaluate(async ([url, limits, ids, maxTokens]) => {
    const model = await window.load(url, { gpu: { limits }, context: 256 })
    const tokens = []
    for await (const { id } of model.generate(Uint32Array.from(ids), { maxTokens }).tokens()) tokens.push(id)
    return { tokens, dispatches: model.info.dispatchesPerToken }
  }, [MODEL, limits, golden.ids, TOKENS] as const)
  const expected = golden.greedy.slice(0, TOKENS)
  const whole = await generate({})
  expect(whole.tokens).toEqual(expected)
  for (const [shards, limits] of [
    // Gate and up in three and down in two besides.
    [32, { maxStorageBufferBindingSize: MIB / 8, maxBufferSize: MIB / 4 }],
    // A buffer that holds less than a binding could span.
    [16, { maxStorageBufferBindingSize: MIB, maxBufferSize: MIB / 4 }]
  ] as const) {
    expect(Math.ceil(EMBEDDING / Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize))).toBe(shards)
    const found = await generate(limits)
    expect(found.tokens, `${shards} shards`).toEqual(expected)
    // Each shard is a dispatch to the LM head. One dispatch looks tokens up in five.
    expect(found.dispatches).toBeGreaterThanOrEqual(whole.dispatches + shards - 1 + Math.ceil(shards / 5) - 1)
  }
})

// Over ten seconds, because each load has a device of its own.
test('a GPU that holds only a part of the model gives the golden tokens and the same logits', async ({ shared }) => {
  await expectStreams(shared)
})

test('where main memory has no room for layers, they come from storage, which may fail', async ({ harness }) => {
  await expectStoresLayers(harness)
})

test('memory that runs out is an error that names what was needed, and all of it is given back', async ({ harness }) => {
  // A model made for four million tokens, whose KV cache really takes more than this GPU has.
  const bytes = readFileSync(`.${RANDOM_MODEL}`)
  const key = 'bitnet-b1.58.context_length'
  bytes.writeUInt32LE(4 * MIB, bytes.indexOf(key) + key.length + 4)
  await harness.route('/endless.gguf', route => route.fulfill({ body: bytes }))
  for (const worker of [false, true]) {
    const found = await harness.evaluate(async worker => {
      const { BitNet } = window.tritloom
      const devices: GPUDevice[] = []
      const requestDevice = GPUAdapter.prototype.requestDevice
      GPUAdapter.prototype.requestDevice = async function (descriptor) {
        const device = await requestDevice.call(this, descriptor)
        devices.push(device)
        return device
      }
      const load = (context: number) => BitNet.load('/endless.gguf', { backend: 'webgpu', context, worker, cache: 'off' })
      const errors = []
      for (let n = 0; n < 3; n++) errors.push(await load(4 << 20).then(() => 'none', ({ code, message }) => `${code}: ${message}`))
      // A device gives its buffers back when it is destroyed.
      const ends = await Promise.all(devices.map(async device => (await device.lost).reason))
      GPUAdapter.prototype.requestDevice = requestDevice
      const model = await load(64)
      const logits = await model.logits(Uint32Array.of(1))
      await model.dispose()
      return { errors, ends, finite: logits.every(Number.isFinite) }
    }, worker)
    expect(found.finite).toBe(true)
    expect(found.ends).toEqual(worker ? [] : ['destroyed', 'destroyed', 'destroyed'])
    for (const error of found.errors) {
      const [, needed, granted] = /^out-of-memory: .* (\d+) bytes needed for .* 4194304 tokens.* (\d+) granted/.exec(error) ?? [error]
      // Keys and values of three blocks are 6 GiB, in buffers of one.
      expect(Number(needed)).toBeGreaterThan(6 * 1024 * MIB)
      expect(Number(granted)).toBeLessThan(Number(needed) - 1024 * MIB)
    }
  }
})
