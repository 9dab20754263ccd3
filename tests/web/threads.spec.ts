// Threads of the CPU, in a page that is isolated from other origins: the same texts as on one, and what happens where
// memory is refused, where threads do not start, where one ends, and where the model is disposed of.
import { existsSync, readFileSync } from 'node:fs'
import type { BitNetError, LoadOptions } from '../../pkg/index.js'
import {
  continuation, expect, expectedIds, expectRandomModel, GOLDEN_MODEL, goldensInOrder, ISOLATED, load, loadFailure, open, MIB,
  RANDOM_MODEL, storedModels, test
} from './harness'
import type { Harness } from './harness'

let isolated: Harness
let page: Harness['page']

test.describe.configure({ mode: 'serial' })
// The build says why it has left them out.
test.skip(!existsSync('pkg/cpu/tritloom-relaxed-threads.wasm'), 'the package has no modules with threads')
test.beforeAll(async ({ browser }) => {
  isolated = await open(browser, undefined, 'cpu', ISOLATED)
  page = isolated.page
})
test.afterEach(() => page.evaluate(async () => {
  await window.model?.dispose()
  window.worker?.terminate()
  Reflect.deleteProperty(window, 'model')
  Reflect.deleteProperty(window, 'worker')
}))
test.afterAll(() => isolated.close())

/**
 * Makes the loads of the page use a worker in which `patch` has run first. There each thread holds a lock while it lives,
 * and a message `{ end: n }` ends one.
 */
const patchWorker = (patch = '') => page.evaluate(([patch, base]) => {
  const script = (text: string) => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }))
  const first = script(`
    const threads = []
    const holding = url => URL.createObjectURL(new Blob([\`
      const early = []
      const keep = ({ data }) => early.push(data)
      addEventListener('message', keep)
      navigator.locks.request('thread', { mode: 'shared' }, () => new Promise(() => {}))
      import('\${url}').then(() => {
        removeEventListener('message', keep)
        for (const data of early) dispatchEvent(new MessageEvent('message', { data }))
      })\`], { type: 'text/javascript' }))
    globalThis.Worker = class extends Worker {
      constructor(url, options) {
        const computes = String(url).includes('compute-worker')
        super(computes ? holding(url) : url, options)
        if (computes) threads.push(this)
      }
    }
    addEventListener('message', ({ data }) => threads[data.end]?.terminate())
    ${patch}`)
  const worker = script(`import '${first}'; import '${location.origin}${base}/pkg/protocol/worker.js'`)
  window.worker?.terminate()
  window.worker = new Worker(worker, { type: 'module' })
}, [patch, ISOLATED] as const)

/** The threads beside the model's own that live. */
const living = () => page.evaluate(async () =>
  (await navigator.locks.query()).held!.filter(({ name }) => name === 'thread').length)

const expectGoldens = async (count = Infinity) => {
  for (const golden of goldensInOrder.slice(0, count)) {
    const { ids, text } = await continuation(page, golden)
    expect({ ids, text }, golden.name).toEqual({ ids: expectedIds(golden), text: golden.greedy_text })
  }
}

test('the golden model gives each text to its end on two threads, and is gone with them', async () => {
  await patchWorker()
  expect(await load(page, { threads: 2 }, GOLDEN_MODEL)).toMatchObject({
    backend: 'cpu', threads: 2, adapter: 'the CPU with relaxed-simd, 2 threads', notes: []
  })
  expect(await living()).toBe(1)
  await expectGoldens()
  await page.evaluate(() => window.model.dispose())
  await expect.poll(living).toBe(0)
  // Another model in the same worker has others.
  expect(await load(page, { threads: 4 }, RANDOM_MODEL)).toMatchObject({ threads: 4 })
  expect(await living()).toBe(3)
  await expectRandomModel(page)
})

test('without relaxed SIMD too; and as many threads as there are processors, if none are asked for', async () => {
  await patchWorker(`
    const { validate } = WebAssembly
    WebAssembly.validate = bytes => bytes.byteLength !== 36 && validate(bytes)
    Object.defineProperty(navigator, 'hardwareConcurrency', { value: 3 })`)
  const { adapter, kernels, notes } = await load(page, {}, GOLDEN_MODEL)
  expect(adapter).toBe('the CPU with simd128, 3 threads')
  expect(kernels).toContain('I2_S/simd128')
  expect(notes).toEqual([])
  await expectGoldens(3)
})

test('only the module in use is downloaded, and the model is stored', async () => {
  const asked: string[] = []
  const note = (request: { url(): string }) => asked.push(new URL(request.url()).pathname)
  page.context().on('request', note)
  await load(page, { threads: 2 }, GOLDEN_MODEL)
  page.context().off('request', note)
  expect(asked.filter(path => path.endsWith('.wasm'))).toEqual([`${ISOLATED}/pkg/cpu/tritloom-relaxed-threads.wasm`])
  // Waiting for a transaction must not end it, as it would where threads wake what waits.
  const stored = async () => (await storedModels(page)).find(({ url }) => url.endsWith(GOLDEN_MODEL))
  await expect.poll(stored).toMatchObject({ complete: true })
})

/** Obstacles that keep a load from its threads, by the patch of its worker. */
const obstacles: Record<string, { patch: string, threads: number, note: RegExp }> = {
  'shared memory is refused': {
    patch: `WebAssembly.Memory = class { constructor() { throw new RangeError('no room') } }`,
    threads: 1, note: /^one thread computes: the browser refuses memory that threads share$/
  },
  'the browser cannot wait for them': {
    patch: 'delete Atomics.waitAsync', threads: 1, note: /^one thread computes: .*waitAsync$/
  },
  'a policy forbids them': {
    patch: `globalThis.Worker = class extends Worker {
      constructor(url, options) {
        if (String(url).includes('compute-worker') && threads.length > 0) throw new TypeError('forbidden')
        super(url, options)
      }
    }`,
    threads: 2, note: /^2 of 3 threads compute: TypeError: forbidden$/
  },
  'their script is not there': {
    patch: `globalThis.Worker = class extends Worker {
      constructor(url, options) {
        super(String(url).includes('compute-worker') ? self.origin + '/no-such-script.js' : url, options)
      }
    }`,
    threads: 1, note: /^1 of 3 threads compute: the script of a thread was not loaded$/
  },
  'they fail their test': {
    patch: `globalThis.Worker = class extends Worker {
      constructor(url, options) {
        const fails = 'addEventListener("message", () => { postMessage({ runs: false, why: "no" }); close() })'
        super(String(url).includes('compute-worker') ? URL.createObjectURL(new Blob([fails], { type: 'text/javascript' })) : url, options)
      }
    }`,
    threads: 1, note: /^1 of 3 threads compute: no$/
  }
}

for (const [what, { patch, threads, note }] of Object.entries(obstacles)) {
  test(`fewer threads compute, with a note, where ${what}; with \`strict\` that is an error`, async () => {
    await patchWorker(patch)
    const options: LoadOptions = { threads: 3, cache: 'off' }
    const refused = await loadFailure(page, GOLDEN_MODEL, { ...options, strict: true, template: 'builtin' })
    expect(refused).toEqual({ code: 'missing-feature', message: expect.stringMatching(note.source.replace('^', '')) })
    await patchWorker(patch)
    const info = await load(page, options, GOLDEN_MODEL)
    expect(info).toMatchObject({ threads, notes: [expect.stringMatching(note)] })
    await expectGoldens(1)
  })
}

const withoutIsolation: Record<string, { path?: string, options: LoadOptions, why: RegExp }> = {
  'a page that is not isolated': { options: {}, why: /not isolated from other origins/ },
  "a page's own thread": { path: ISOLATED, options: { worker: false }, why: /own thread cannot wait/ }
}

for (const [where, { path, options, why }] of Object.entries(withoutIsolation)) {
  test(`${where} has one thread, and says so if more were asked for`, async ({ browser }) => {
    const { page, close } = await open(browser, undefined, 'cpu', path)
    expect(await load(page, options, GOLDEN_MODEL)).toMatchObject({ threads: 1, notes: [] })
    expect(await load(page, { ...options, threads: 1 }, GOLDEN_MODEL)).toMatchObject({ threads: 1, notes: [] })
    const { threads, notes } = await load(page, { ...options, threads: 2 }, GOLDEN_MODEL)
    expect({ threads, notes }).toEqual({ threads: 1, notes: [expect.stringMatching(why)] })
    const strict = await loadFailure(page, GOLDEN_MODEL, { ...options, threads: 2, strict: true, template: 'builtin' })
    expect(strict).toEqual({ code: 'missing-feature', message: expect.stringMatching(why) })
    await close()
  })
}

/** An answer of 400 tokens, or the error's code, after `first` was done when it had begun. */
const longAnswer = (first: string) => page.evaluate(async first => {
  const { model } = window
  const prompt = Uint32Array.from({ length: 40 }, (_, n) => n % 300)
  // The tokens that end an answer.
  const logitBias = { 4089: -100, 4092: -100 }
  const answer = async () => {
    const ids: (number | undefined)[] = []
    for await (const { id } of model.generate(prompt, { maxTokens: 400, stop: [], promptLookup: false, logitBias }).tokens()) {
      ids.push(id)
      if (ids.length === 20 && first) await (0, eval)(`(async () => { ${first} })()`)
    }
    return ids.join()
  }
  return answer().catch((error: BitNetError) => `${error.code}: ${error.message}`)
}, first)

test('an answer whose thread ends goes on, or is an error, but is never another one', async () => {
  // A thread counts as gone after ten seconds.
  test.slow()
  await patchWorker()
  await load(page, { threads: 3 })
  const right = await longAnswer('')
  const found = await longAnswer('window.worker.postMessage({ end: 0 })')
  await expect.poll(living, { timeout: 60_000 }).toBe(1)
  const after = found === right ? await longAnswer('') : right
  if (after !== right) expect(after).toMatch(/^internal: .*a thread of the CPU engine has ended/)
  else if (found !== right) expect(found).toMatch(/^internal: .*a thread of the CPU engine has ended/)
})

test('a model that is disposed of while its threads compute is gone, and they are', async () => {
  await patchWorker()
  await load(page, { threads: 4 })
  expect(await longAnswer('await window.model.dispose()')).toMatch(/^disposed: /)
  await expect.poll(living).toBe(0)
  // In a worker of the package's own too, which ends with it.
  await page.evaluate(() => { window.worker!.terminate(); Reflect.deleteProperty(window, 'worker') })
  // A thread that was ended in the test before may still be listed.
  const before = page.workers()
  const others = () => page.workers().filter(worker => !before.includes(worker)).length
  await load(page, { threads: 4 })
  await expect.poll(async () => others()).toBeGreaterThan(0)
  expect(await longAnswer('await window.model.dispose()')).toMatch(/^disposed: /)
  await expect.poll(async () => others()).toBe(0)
  await load(page, { threads: 4 }, RANDOM_MODEL)
  await expectRandomModel(page)
})

test('memory that cannot grow is an error, and a smaller context fits', async () => {
  const model = readFileSync(`.${RANDOM_MODEL}`)
  const key = 'bitnet-b1.58.context_length'
  model.writeUInt32LE(4 * MIB, model.indexOf(key) + key.length + 4)
  // As a phone does, which gives a page less than four GiB.
  await patchWorker(`
    const { Memory } = WebAssembly
    WebAssembly.Memory = class extends Memory {
      constructor(sizes) {
        if (sizes.maximum > 16384) throw new RangeError('no room')
        super({ ...sizes, maximum: ${100 * MIB / 65536} })
      }
    }`)
  const found = await page.evaluate(async bytes => {
    const file = new Blob([Uint8Array.from(atob(bytes), char => char.charCodeAt(0))])
    const loaded = (context?: number) => window.load(file, { threads: 2, ...(context && { context }) }).then(
      async ({ info }) => ({ ...info, finite: (await window.model.logits(Uint32Array.of(1))).every(Number.isFinite) }),
      (error: BitNetError) => error.code)
    return [await loaded(4 << 20), await loaded(200_000), await loaded(64), await loaded()]
  }, model.toString('base64'))
  expect(found).toEqual([
    'out-of-memory', 'out-of-memory', expect.objectContaining({ threads: 2, finite: true, contextLength: 64 }),
    expect.objectContaining({ threads: 2, finite: true, notes: [expect.stringMatching(/^the context has \d+ tokens/)] })
  ])
})
