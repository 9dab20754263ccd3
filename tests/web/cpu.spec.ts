// The CPU computes: the same texts as on a GPU, in every module; which of the two is chosen; and what a page that
// computes itself must not lose, such as its events.
import { readFileSync } from 'node:fs'
import {
  continuation, expect, expectedIds, expectRandomModel, failure, GOLDEN_MODEL, goldens, goldensInOrder, load,
  loadFailure, loadReporting, MIB, RANDOM_MODEL, test
} from './harness'
import type { InPage } from './harness'
import type { LoadOptions } from '../../pkg/index.js'

test.use({ backend: 'cpu' })

const expectGoldens = async (page: InPage, names?: string[], promptLookup?: boolean) => {
  let draftPasses = 0
  for (const golden of goldensInOrder.filter(({ name }) => names?.includes(name) ?? true)) {
    const found = await continuation(page, golden, promptLookup)
    expect(found, golden.name).toMatchObject({
      promptTokens: golden.ids.length, finishReason: golden.greedy_stopped ? 'stop' : 'length',
      ids: expectedIds(golden), text: golden.greedy_text
    })
    draftPasses += found.draftPasses
  }
  return draftPasses
}

/** In this thread, makes the browser refuse the modules for the CPU that these instructions begin. */
const refuse = (page: InPage, names: ('relaxed' | 'simd')[]) => page.evaluate(names => {
  const sizes = { relaxed: 36, simd: 31 }
  const { validate } = WebAssembly
  const refused = names.map(name => sizes[name])
  WebAssembly.validate = bytes => !refused.includes(bytes.byteLength) && validate(bytes)
}, names)

const FEW = ['once', 'count', 'follow_up']

const variants: Record<string, { options: LoadOptions, url?: string, prompts?: string[] }> = {
  'as it comes': { options: {} },
  'in this thread': { options: { worker: false }, prompts: FEW },
  'with keys and values in f32': { options: { kv: 'f32' }, prompts: FEW },
  'with keys and values in int8': { options: { kv: 'int8' } },
  'so that calls can be repeated': { options: { deterministic: true } },
  'with codes in the order of ARM builds': { options: { i2sLayout: 'arm' }, url: '/arm.gguf', prompts: FEW }
}

for (const [name, { options, url = GOLDEN_MODEL, prompts }] of Object.entries(variants)) {
  test(`the golden model gives each text to its end, ${name}`, async ({ shared }) => {
    const info = await load(shared, options, url)
    expect(info).toMatchObject({ backend: 'cpu', kv: options.kv ?? 'f16' })
    expect(info.adapter).toMatch(/^the CPU with relaxed-simd/)
    expect(info.kernels).toContain('I2_S/relaxed-simd')
    await expectGoldens(shared, prompts)
  })
}

test('drafts are checked several at a time', async ({ shared }) => {
  await load(shared, {}, GOLDEN_MODEL)
  expect(await expectGoldens(shared, ['verse', 'count'], true)).toBeGreaterThan(0)
})

test('without relaxed SIMD another module gives the same texts; without any SIMD the CPU is refused', async ({ harness }) => {
  await refuse(harness, ['relaxed'])
  const { kernels, adapter } = await load(harness, { worker: false }, GOLDEN_MODEL)
  expect(kernels).toContain('I2_S/simd128')
  expect(adapter).toMatch(/^the CPU with simd128/)
  await expectGoldens(harness)
  await refuse(harness, ['simd', 'relaxed'])
  const { code, message } = await loadFailure(harness, GOLDEN_MODEL, { worker: false })
  expect(`${code}: ${message}`).toMatch(/^missing-feature: .*no WebAssembly with SIMD/)
})

test('a module that does not compile is left for the next, with a note', async ({ harness }) => {
  // A server may answer with a page for a file that it does not have.
  const files = /tritloom-(relaxed|simd)\.wasm/
  await harness.route(files, route => route.fulfill({ body: '<!doctype html>', contentType: 'text/html' }))
  expect((await loadFailure(harness, GOLDEN_MODEL, { worker: false })).code).toBe('network')
  await harness.unroute(files)

  const bad = Buffer.from([0, 97, 115, 109, 1, 0, 0, 0, 99, 1, 0])
  await harness.route(/tritloom-relaxed\.wasm/, route => route.fulfill({ body: bad, contentType: 'application/wasm' }))
  expect(await loadFailure(harness, GOLDEN_MODEL, { worker: false, strict: true, template: 'builtin' })).toEqual({
    code: 'network', message: expect.stringMatching(/could not load tritloom-relaxed.wasm/)
  })
  const { kernels, notes } = await load(harness, { worker: false }, GOLDEN_MODEL)
  expect(kernels).toContain('I2_S/simd128')
  expect(notes).toEqual([expect.stringMatching(/^the module relaxed does not run here: /)])
  await expectGoldens(harness, FEW)
})

test('only what computes is downloaded', async ({ harness }) => {
  const asked: string[] = []
  harness.context().on('request', request => asked.push(new URL(request.url()).pathname))
  const modules = () => asked.splice(0).filter(path => path.endsWith('.wasm'))
  await load(harness, { worker: false }, GOLDEN_MODEL)
  expect(modules()).toEqual(['/pkg/cpu/tritloom-relaxed.wasm'])
  await load(harness, { worker: false, backend: 'webgpu' }, GOLDEN_MODEL)
  expect(modules()).toEqual(['/pkg/tritloom_bg.wasm'])
})

/** How a page gets a back end: what it is, and the notes of the load and of the model. */
const chosen = async (page: InPage, options: LoadOptions) => {
  const { notes } = await loadReporting(page, GOLDEN_MODEL, options)
  const { backend, notes: sentences } = await page.evaluate(() => window.model.info)
  return { backend, notes, sentences }
}

test('auto takes the CPU if the GPU is a CPU, or missing, and says so', async ({ shared }) => {
  const software = await chosen(shared, { backend: 'auto' })
  expect(software).toEqual({
    backend: 'cpu',
    notes: [{ kind: 'cpu', why: expect.stringMatching(/^the GPU is a CPU \(.*swiftshader/i) }],
    sentences: [expect.stringMatching(/^the CPU computes: the GPU is a CPU/)]
  })
  const asked = await chosen(shared, { backend: 'auto', gpu: { features: { software: true } } })
  expect(asked).toEqual({ backend: 'webgpu', notes: [], sentences: [] })
  expect(await chosen(shared, { backend: 'cpu' })).toEqual({ backend: 'cpu', notes: [], sentences: [] })

  // The GPU fails when it is asked for, and when it is opened, of a source that can be read once too.
  for (const method of ['requestAdapter', 'requestDevice'] as const) {
    const why = await shared.evaluate(async method => {
      const { prototype } = method === 'requestAdapter' ? GPU : GPUAdapter
      const before = Object.getOwnPropertyDescriptor(prototype, method)!
      Object.defineProperty(prototype, method, { value: async () => { throw new Error('it broke') }, configurable: true })
      const { body } = await fetch('/tests/data/golden/golden.gguf')
      // Asking for a CPU's shaders takes SwiftShader for a GPU.
      const model = await window.load(body!, { backend: 'auto', worker: false, gpu: { features: { software: true } } })
      Object.defineProperty(prototype, method, before)
      return [model.info.backend, ...model.info.notes].join('; ')
    }, method)
    expect(why).toMatch(/^cpu; the CPU computes: .*it broke/)
  }
  await shared.evaluate(() => { GPU.prototype.requestAdapter = async () => null })
  const noAdapter = await chosen(shared, { backend: 'auto', worker: false })
  expect(noAdapter.notes).toEqual([{ kind: 'cpu', why: 'this browser has WebGPU but no GPU adapter for it' }])
  for (const [options, code] of [
    [{ backend: 'webgpu' }, 'no-adapter'], [{ backend: 'auto', strict: true, template: 'builtin' }, 'no-adapter']
  ] as const) {
    expect((await loadFailure(shared, GOLDEN_MODEL, { ...options, worker: false })).code).toBe(code)
  }
  await shared.evaluate(() => Object.defineProperty(navigator, 'gpu', { value: undefined, configurable: true }))
  const noWebGpu = await chosen(shared, { backend: 'auto', worker: false })
  expect(noWebGpu).toMatchObject({ backend: 'cpu', notes: [{ kind: 'cpu', why: expect.stringMatching(/^this browser has no WebGPU/) }] })
  for (const [options, code] of [
    [{ backend: 'webgpu' }, 'no-webgpu'], [{ backend: 'auto', strict: true, template: 'builtin' }, 'no-webgpu']
  ] as const) {
    expect((await loadFailure(shared, GOLDEN_MODEL, { ...options, worker: false })).code).toBe(code)
  }
})

test('the random model has its logits', async ({ shared }) => {
  await load(shared, {}, RANDOM_MODEL)
  await expectRandomModel(shared)
  await load(shared, { worker: false }, RANDOM_MODEL)
  await expectRandomModel(shared)
})

test('several texts at a time are those that each would have alone', async ({ shared }) => {
  await load(shared, {}, GOLDEN_MODEL)
  const some = goldens.filter(({ kind }) => kind === 'raw').slice(0, 6)
  const found = await shared.evaluate(some => Promise.all(some.map(({ text, greedy }) =>
    window.model.generate(text, { raw: true, special: true, maxTokens: greedy.length }).text())), some)
  expect(found).toEqual(some.map(({ greedy_text: text }) => text))
})

for (const worker of [true, false]) {
  const where = worker ? 'in a worker' : 'in this thread'

  test(`while a prompt is computed, other events are handled, and a stop is, ${where}`, async ({ shared }) => {
    await load(shared, worker ? {} : { worker })
    const found = await shared.evaluate(async () => {
      const { model } = window
      const ids = Uint32Array.from({ length: 1000 }, (_, n) => n % 300)
      const abort = new AbortController()
      let ticks = 0
      const timer = setInterval(() => { if (++ticks === 3) abort.abort(new Error('enough')) }, 5)
      const failed = await model.generate(ids, { signal: abort.signal }).text().catch((error: Error) => error.message)
      clearInterval(timer)
      return { failed, next: await model.generate(ids.subarray(0, 4), { maxTokens: 1 }).text().then(() => true) }
    })
    expect(found).toEqual({ failed: 'enough', next: true })
  })

  test(`a model that is disposed of while it computes is gone at once, ${where}`, async ({ shared }) => {
    await load(shared, worker ? {} : { worker })
    const work = `
      const running = model.generate(Uint32Array.from({ length: 1000 }, (_, n) => n % 300)).text()
      await new Promise(resolve => setTimeout(resolve, 50))
      await model.dispose()
      await running`
    expect((await failure(shared, work)).code).toBe('disposed')
    await load(shared, worker ? {} : { worker }, RANDOM_MODEL)
    await expectRandomModel(shared)
  })
}

test('a chat is saved and restored with its keys and values', async ({ shared }) => {
  for (const kv of ['f16', 'int8'] as const) {
    await load(shared, { kv }, GOLDEN_MODEL)
    const found = await shared.evaluate(async () => {
      const { model } = window
      const chat = model.createChat()
      await chat.send('Who are you?', { maxTokens: 6 }).text()
      const saved = await chat.save()
      const expected = await chat.send('And then?', { maxTokens: 6 }).text()
      const fresh = await model.generate('x', { maxTokens: 1 }).text()
      const again = await model.restoreChat(saved)
      const answer = again.send('And then?', { maxTokens: 6 })
      return { expected, text: await answer.text(), fresh, cached: (await answer.stats).reusedTokens }
    })
    expect(found.text).toBe(found.expected)
    expect(found.cached).toBeGreaterThan(0)
  }
})

/** The memory of the module in this thread, after each of its loads. */
const metered = (page: InPage) => page.evaluate(() => {
  const { instantiateStreaming } = WebAssembly
  WebAssembly.instantiateStreaming = async (...args: Parameters<typeof instantiateStreaming>) => {
    const started = await instantiateStreaming(...args)
    Object.assign(window, { memory: started.instance.exports.memory })
    return started
  }
})

const bytes = (page: InPage) =>
  page.evaluate(() => (window as unknown as { memory: WebAssembly.Memory }).memory.buffer.byteLength)

test('weights are read straight into their memory: memory has the file, the cache and little else', async ({ harness }) => {
  await metered(harness)
  const size = 10_342_944
  for (const source of ['url', 'blob']) {
    const info = await harness.evaluate(async source => {
      const url = '/models/tiny-stories.gguf'
      const from = source === 'url' ? url : await (await fetch(url)).blob()
      return (await window.load(from, { worker: false, cache: 'off' })).info
    }, source)
    expect(info.gpuBytes).toBeGreaterThan(size)
    expect(await bytes(harness) - info.gpuBytes).toBeLessThan(12 * MIB)
  }
})

test('memory that runs out is an error, and a smaller context fits', async ({ harness }) => {
  // A model made for four million tokens, whose KV cache takes more than WebAssembly can have.
  const model = readFileSync(`.${RANDOM_MODEL}`)
  const key = 'bitnet-b1.58.context_length'
  model.writeUInt32LE(4 * MIB, model.indexOf(key) + key.length + 4)
  await harness.route('/endless.gguf', route => route.fulfill({ body: model }))
  // As a phone does, which gives a page less than that.
  await harness.evaluate(pages => {
    WebAssembly.instantiateStreaming = async (response, imports) => {
      const bytes = new Uint8Array(await (await response).arrayBuffer())
      const number = (value: number) => {
        const groups = []
        for (; value > 127; value >>= 7) groups.push((value & 127) | 128)
        return [...groups, value]
      }
      for (let at = 8; at < bytes.length;) {
        const [id] = [bytes[at]!]
        let [size, shift, body] = [0, 0, at + 1]
        do { size |= (bytes[body]! & 127) << shift; shift += 7 } while (bytes[body++]! > 127)
        if (id === 5) {
          // One memory, without a most number of pages so far.
          const least = [...bytes.subarray(body + 2, body + size)]
          const section = [1, 1, ...least, ...number(pages)]
          const patched = [...[5], ...number(section.length), ...section]
          const whole = new Uint8Array(at + patched.length + bytes.length - body - size)
          whole.set(bytes.subarray(0, at))
          whole.set(patched, at)
          whole.set(bytes.subarray(body + size), at + patched.length)
          return WebAssembly.instantiate(whole, imports)
        }
        at = body + size
      }
      throw new Error('no memory')
    }
  }, 100 * MIB / 65536)
  // The first is more than there are addresses, the second more than this page gets.
  for (const context of [4 * MIB, 200_000]) {
    for (let n = 0; n < 2; n++) {
      const { code, message } = await loadFailure(harness, '/endless.gguf', { context, worker: false, cache: 'off' })
      expect(`${code}: ${message}`).toMatch(new RegExp(`^out-of-memory: .*bytes needed for .*${context} tokens`))
    }
  }
  const isFinite = () => harness.evaluate(async () => (await window.model.logits(Uint32Array.of(1))).every(Number.isFinite))
  await load(harness, { context: 64, worker: false, cache: 'off' }, '/endless.gguf')
  expect(await isFinite()).toBe(true)
  // The default context becomes shorter until it fits.
  const { notes, contextLength } = await load(harness, { worker: false, cache: 'off' }, '/endless.gguf')
  expect(notes).toEqual([expect.stringMatching(new RegExp(`^the context has ${contextLength} tokens`))])
  expect(await isFinite()).toBe(true)
})
