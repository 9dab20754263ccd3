// Chooses between the GPU and the CPU as in browsers that cannot be had here.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const part = path => import(new URL(`../../pkg/${path}`, import.meta.url))
const { adapterOrWhy } = await part('crate/adapter.js')
const { chosen } = await part('cpu/choose.js')
const { onGpu, ready } = await part('crate/wasm.js')

/** Gives `globalThis` a property while `work` runs. */
const having = async (name, value, work) => {
  const before = Object.getOwnPropertyDescriptor(globalThis, name)
  Object.defineProperty(globalThis, name, { value, configurable: true })
  try {
    return await work()
  } finally {
    delete globalThis[name]
    if (before) Object.defineProperty(globalThis, name, before)
  }
}

const withGpu = (requestAdapter, work) => having('navigator', { gpu: { requestAdapter } }, work)
const software = { features: new Set(), limits: {}, info: { description: 'SwiftShader' } }

test('a GPU that does not answer counts as none', async () => {
  const why = await withGpu(() => new Promise(() => {}), () => adapterOrWhy('low-power', 5))
  assert.match(why, /does not answer/)
  assert.match(await withGpu(() => { throw new Error('it broke') }, () => adapterOrWhy()), /it broke/)
  assert.equal(await withGpu(() => software, () => adapterOrWhy()), software)
})

test('without SIMD a GPU that is a CPU computes, and nothing without any GPU', async () => {
  const none = { ...WebAssembly, validate: () => false }
  await having('WebAssembly', none, async () => {
    assert.deepEqual(await withGpu(async () => software, () => chosen({})), { crate: onGpu, notes: [] })
    await assert.rejects(withGpu(async () => null, () => chosen({})), { code: 'missing-feature', message: /no WebAssembly with SIMD/ })
  })
})

test('without WebAssembly both back ends say so', async () => {
  await having('WebAssembly', undefined, async () => {
    await assert.rejects(chosen({ backend: 'cpu' }), { code: 'missing-feature', message: /no WebAssembly/ })
    await assert.rejects(ready(onGpu), { code: 'missing-feature', message: /no WebAssembly/ })
  })
})

test('a GPU that fails when it is opened is left for the CPU, unless it was asked for', async () => {
  const card = { ...software, info: { vendor: 'a vendor' } }
  const { instead, ...gpu } = await withGpu(async () => card, () => chosen({}))
  assert.deepEqual(gpu, { crate: onGpu, notes: [] })
  assert.equal(await instead({ code: 'bad-gguf', message: 'no model' }), undefined)
  for (const options of [{ backend: 'webgpu' }, { strict: true }]) {
    assert.equal((await withGpu(async () => card, () => chosen(options))).instead, undefined)
  }
})

test('an estimate of the CPU is for the threads that a load would take', async () => {
  const { availability } = await part('page/availability.js')
  // Each run takes a millisecond, so the estimates do not depend on this machine.
  let now = 0
  const clock = { now: () => now++ }
  const estimate = (isolated, processors) => having('performance', clock, () => having('isSecureContext', true, () =>
    having('crossOriginIsolated', isolated, () => having('navigator', { hardwareConcurrency: processors }, async () =>
      (await availability({ bytes: 1e9 })).backends.cpu.tokensPerSecond))))
  const alone = await estimate(false, 8)
  assert.ok(alone > 0)
  assert.equal(await estimate(true, 1), alone)
  const [two, eight] = [await estimate(true, 2), await estimate(true, 8)]
  assert.ok(alone < two && two < 2 * alone, `${two} beside ${alone}`)
  assert.ok(two < eight && eight < 8 * alone, `${eight} beside ${alone}`)
  assert.equal(await estimate(true, 64), eight)
})

test('there are at most two threads for each processor', async () => {
  const { startThreads } = await part('cpu/threads.js')
  let made = 0
  class Worker {
    constructor() { made += 1 }
    postMessage() { this.onmessage({ data: { runs: true } }) }
    terminate() {}
  }
  const started = (count, navigator) => having('Worker', Worker, () => having('navigator', navigator, async () => {
    made = 0
    const failures = await startThreads(count, {})
    return [made, failures.length, new Set(failures)]
  }))
  // The thread that calls is one of them.
  assert.deepEqual(await started(3, { hardwareConcurrency: 2 }), [3, 0, new Set()])
  assert.deepEqual(await started(1023, { hardwareConcurrency: 2 }), [3, 1020, new Set(['this machine tells of 2 processors'])])
  assert.deepEqual(await started(1023, {}), [15, 1008, new Set(['this machine tells of no processors'])])
})
