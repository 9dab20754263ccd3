// How models are loaded for the AI SDK: once, when they are needed. `BitNet.load` is replaced.
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { generateText } from 'ai'
import { load, modelOf } from './models.mjs'

const { createTritloom, doesBrowserSupportTritloom, TritloomLanguageModel } = await load('ai-sdk')
const { BitNet } = await load('index')
const { BitNetError } = await load('error')

const real = { load: BitNet.load, availability: BitNet.availability, list: BitNet.cache.list }
afterEach(() => {
  Object.assign(BitNet, { load: real.load, availability: real.availability })
  BitNet.cache.list = real.list
})

const URL_OF_MODEL = 'https://a.example/m.gguf'

/** Replaces `BitNet.load`. `loads` has each load, which `loaded` ends. */
const replaced = () => {
  const loads = []
  BitNet.load = (source, options) => new Promise((resolve, reject) => {
    let end
    const ended = new Promise(resolve => { end = resolve })
    const model = { ...modelOf(['ok']), ended, end, disposed: 0, async dispose() { this.disposed += 1 } }
    options.signal.addEventListener('abort', () => reject(options.signal.reason))
    loads.push({ source, options, model, loaded: () => resolve(model), fail: reject, tell: fraction => options.onProgress({ fraction }) })
  })
  return loads
}

/** Waits until `count` loads have begun. A load begins within a few turns of the event loop. */
const begun = async (loads, count) => {
  for (let turn = 0; loads.length < count; turn++) {
    assert.ok(turn < 10_000, `${loads.length} loads have begun`)
    await new Promise(setImmediate)
  }
  return loads[count - 1]
}

test('models with one address and the same settings are loaded once', async () => {
  const loads = replaced()
  const provider = createTritloom({ context: 64 })
  const same = [provider(URL_OF_MODEL), provider(new URL(URL_OF_MODEL), { context: 64 }), provider(URL_OF_MODEL, { backend: undefined })]
  const answers = same.map(model => generateText({ model, prompt: 'Hello' }))
  const first = await begun(loads, 1)
  assert.equal(await same[1].availability(), 'downloading')
  first.loaded()
  assert.deepEqual((await Promise.all(answers)).map(({ text }) => text), ['ok', 'ok', 'ok'])
  assert.equal(await same[0].availability(), 'available')
  assert.ok(same.every(({ isModelInitialized }) => isModelInitialized))
  assert.equal(loads.length, 1)
  assert.equal(first.options.context, 64)

  const other = provider(URL_OF_MODEL, { context: 128 }).createSessionWithProgress()
  const second = await begun(loads, 2)
  assert.equal(second.options.context, 128)
  second.loaded()
  await other
})

test('settings that are plain objects are the same by their values, and addresses by what they mean', async () => {
  const loads = replaced()
  const provider = createTritloom()
  const [limits, features] = [{ maxBufferSize: 9 }, { subgroups: false }]
  const same = [
    provider(URL_OF_MODEL, { gpu: { limits, features } }), provider('https://a.example/b/../m.gguf', { gpu: { features: { ...features }, limits: { ...limits } } })
  ]
  const [session] = same.map(model => model.createSessionWithProgress())
  ;(await begun(loads, 1)).loaded()
  await session
  assert.ok(same.every(({ isModelInitialized }) => isModelInitialized))
  const { signal } = new AbortController()
  for (const settings of [{ gpu: { limits: { maxBufferSize: 8 }, features } }, { gpu: { limits, features }, signal }, {}]) {
    assert.equal(provider(URL_OF_MODEL, settings).isModelInitialized, false)
  }
  assert.equal(loads.length, 1)
})

test('a model that its class makes is loaded for itself', async () => {
  const loads = replaced()
  const made = [0, 1].map(() => new TritloomLanguageModel(URL_OF_MODEL, { context: 64 }))
  const answers = made.map(model => generateText({ model, prompt: 'Hello' }))
  await begun(loads, 2)
  for (const { loaded } of loads) loaded()
  assert.deepEqual((await Promise.all(answers)).map(({ text }) => text), ['ok', 'ok'])
  assert.deepEqual([made[0].modelId, loads[0].options.context], [URL_OF_MODEL, 64])
  const own = new TritloomLanguageModel(modelOf(['mine']))
  assert.equal((await generateText({ model: own, prompt: 'Hello' })).text, 'mine')
  for (const wrong of [[], [7], [URL_OF_MODEL, 7], [modelOf([]), { context: 64 }]]) {
    assert.throws(() => new TritloomLanguageModel(...wrong), { code: 'bad-option' })
  }
})

test('progress rises from 0 to 1, also for those who come later', async () => {
  const loads = replaced()
  const own = []
  const model = createTritloom()(URL_OF_MODEL, { onProgress: ({ fraction }) => own.push(fraction) })
  const [seen, later] = [[], []]
  const session = model.createSessionWithProgress(fraction => seen.push(fraction))
  const { tell, loaded } = await begun(loads, 1)
  for (const fraction of [0, 0.25, 0.25, 0.5]) tell(fraction)
  const joined = model.createSessionWithProgress(fraction => later.push(fraction))
  // A load reports that it is ready before it resolves.
  for (const fraction of [0.75, 1]) tell(fraction)
  loaded()
  assert.equal(await session, model)
  await joined
  // The model is still being stored.
  tell(1)
  assert.deepEqual(seen, [0, 0.25, 0.5, 0.75, 1])
  assert.deepEqual(later, [0.5, 0.75, 1])
  assert.deepEqual(own, [0, 0.25, 0.25, 0.5, 0.75, 1, 1])
  const ready = []
  await model.createSessionWithProgress(fraction => ready.push(fraction))
  assert.deepEqual(ready, [1])
})

test('a load that fails is begun anew by the next call', async () => {
  const loads = replaced()
  const model = createTritloom()(URL_OF_MODEL)
  const first = generateText({ model, prompt: 'Hello', maxRetries: 0 })
  ;(await begun(loads, 1)).fail(new BitNetError('bad-option', 'bad option `contxt`: no such option'))
  await assert.rejects(first, { code: 'bad-option', isRetryable: false, url: URL_OF_MODEL })
  const again = model.createSessionWithProgress()
  ;(await begun(loads, 2)).fail(new BitNetError('network', 'gone'))
  await assert.rejects(again, { code: 'network', isRetryable: true })
  const third = generateText({ model, prompt: 'Hello' })
  ;(await begun(loads, 3)).loaded()
  assert.equal((await third).text, 'ok')
})

test('a call that is stopped leaves the load to others; the signal of the settings ends it', async () => {
  const loads = replaced()
  const [call, all] = [new AbortController(), new AbortController()]
  const model = createTritloom()(URL_OF_MODEL, { signal: all.signal })
  const stopped = generateText({ model, prompt: 'Hello', abortSignal: call.signal })
  const other = generateText({ model, prompt: 'Hello' })
  const { options } = await begun(loads, 1)
  call.abort()
  await assert.rejects(stopped, { name: 'AbortError' })
  assert.equal(options.signal.aborted, false)
  all.abort(new Error('left'))
  await assert.rejects(other, { message: 'left' })
})

test('a model that was disposed is loaded again, and a load ends', async () => {
  const loads = replaced()
  const model = createTritloom()(URL_OF_MODEL)
  const session = model.createSessionWithProgress()
  await begun(loads, 1)
  await model.dispose()
  await assert.rejects(session, { code: 'disposed' })
  await model.dispose()
  const again = generateText({ model, prompt: 'Hello' })
  const second = await begun(loads, 2)
  second.loaded()
  await again
  await model[Symbol.asyncDispose]()
  assert.equal(second.model.disposed, 1)
  assert.equal(model.isModelInitialized, false)

  const own = { ...modelOf(['ok']), disposed: 0, async dispose() { this.disposed += 1 } }
  await createTritloom()(own).dispose()
  assert.equal(own.disposed, 1)
})

test('a model whose thread has ended is loaded again by the next call', async () => {
  const loads = replaced()
  BitNet.availability = async () => ({ available: true, backends: {} })
  BitNet.cache.list = async () => []
  const model = createTritloom()(URL_OF_MODEL)
  const first = generateText({ model, prompt: 'Hello' })
  const dead = await begun(loads, 1)
  dead.loaded()
  await first
  dead.model.end(new BitNetError('internal', 'the worker has ended'))
  await new Promise(setImmediate)
  assert.deepEqual([model.isModelInitialized, await model.availability()], [false, 'downloadable'])
  const again = generateText({ model, prompt: 'Hello' })
  ;(await begun(loads, 2)).loaded()
  assert.equal((await again).text, 'ok')
  assert.equal(model.isModelInitialized, true)
})

test('the next model is not loaded before the last one is gone', async () => {
  const loads = replaced()
  const model = createTritloom()(URL_OF_MODEL)
  const session = model.createSessionWithProgress()
  const first = await begun(loads, 1)
  let gone
  first.model.dispose = () => new Promise(resolve => { gone = resolve })
  first.loaded()
  await session
  const disposed = model.dispose()
  const again = generateText({ model, prompt: 'Hello' })
  while (!gone) await new Promise(setImmediate)
  await new Promise(setImmediate)
  assert.equal(loads.length, 1)
  gone()
  await disposed
  ;(await begun(loads, 2)).loaded()
  assert.equal((await again).text, 'ok')
})

test('another onProgress is no other model: the latest is called', async () => {
  const loads = replaced()
  const seen = []
  const provider = createTritloom({ context: 64 })
  const made = ['first', 'second', undefined].map(name =>
    provider(URL_OF_MODEL, { onProgress: name && (({ fraction }) => seen.push([name, fraction])) }))
  const sessions = made.map(model => model.createSessionWithProgress())
  const { tell, loaded } = await begun(loads, 1)
  tell(0.5)
  provider(URL_OF_MODEL, { onProgress: ({ fraction }) => seen.push(['third', fraction]) })
  tell(1)
  loaded()
  await Promise.all(sessions)
  assert.equal(loads.length, 1)
  assert.deepEqual(seen, [['second', 0.5], ['third', 1]])
  assert.throws(() => provider(URL_OF_MODEL, { onProgress: 3 }), { code: 'bad-option' })
})

test('availability: what runs here, and what is stored', async () => {
  const of = async (source, settings, { available = true, stored = [], cpu = true } = {}) => {
    const backends = { webgpu: { available: !cpu && available }, cpu: { available: cpu && available } }
    BitNet.availability = async () => ({ available, backends })
    BitNet.cache.list = async () => {
      if (stored === 'blocked') throw new BitNetError('storage', 'blocked')
      return stored
    }
    return createTritloom()(source, settings).availability()
  }
  const whole = [{ url: URL_OF_MODEL, complete: true }]
  assert.equal(await of(URL_OF_MODEL), 'downloadable')
  assert.equal(await of(`${URL_OF_MODEL}#part`, {}, { stored: whole }), 'available')
  assert.equal(await of(URL_OF_MODEL, {}, { stored: [{ url: URL_OF_MODEL, complete: false }] }), 'downloadable')
  assert.equal(await of(URL_OF_MODEL, {}, { stored: 'blocked' }), 'downloadable')
  assert.equal(await of(URL_OF_MODEL, { cache: 'only' }), 'unavailable')
  assert.equal(await of(URL_OF_MODEL, { cache: 'only' }, { stored: whole }), 'available')
  assert.equal(await of(URL_OF_MODEL, { cache: 'refresh' }, { stored: whole }), 'downloadable')
  assert.equal(await of(URL_OF_MODEL, {}, { stored: whole, available: false }), 'unavailable')
  assert.equal(await of(URL_OF_MODEL, { backend: 'webgpu' }, { stored: whole }), 'unavailable')
  assert.equal(await of(URL_OF_MODEL, { backend: 'cpu' }, { stored: whole }), 'available')
  for (const source of [new Blob([]), 'data:,GGUF']) assert.equal(await of(source, {}), 'available')
  await assert.rejects(of('http://'), { code: 'bad-option' })
})

test('outside of a browser it says that none can run', () => {
  assert.equal(doesBrowserSupportTritloom(), false)
})
