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
