// Loading: sources, progress, storage on the device, aborting, and everything that can go wrong.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  continuation, expect, expectNeverBack, expectRandomModel, failure, GOLDEN_MODEL, goldens, load, loadFailure, loadReporting, MODEL,
  RANDOM_MODEL, server, SPREAD_MODEL, storedModels, test
} from './harness'
import type { LoadOptions } from '../../pkg/index.js'

test.use({ backend: 'cpu' })

/** Quick to load: half a megabyte. */
const SMALL = RANDOM_MODEL
const BYTES = 555_936

test.describe('sources', () => {
  const sources = {
    'a relative address': `'${SMALL}'`,
    'an address with a query and a fragment': `new URL('${SMALL}?download=true#here', location.href)`,
    'a Request': `new Request('${SMALL}', { headers: { 'x-test': '1' } })`,
    'a blob: address': `URL.createObjectURL(await (await fetch('${SMALL}')).blob())`,
    'a Blob': `await (await fetch('${SMALL}')).blob()`,
    'an ArrayBuffer': `await (await fetch('${SMALL}')).arrayBuffer()`,
    'a part of a larger buffer': `await (async () => {
      const bytes = new Uint8Array(await (await fetch('${SMALL}')).arrayBuffer())
      const larger = new Uint8Array(bytes.length + 200)
      larger.set(bytes, 100)
      return larger.subarray(100, 100 + bytes.length)
    })()`,
    'a ReadableStream': `(await fetch('${SMALL}')).body`,
    'a response without a length': `'/as/chunked${SMALL}'`,
    'a compressed response': `'/as/gzip${SMALL}'`,
    'another origin': `location.origin.replace(/(\\d+)$/, port => Number(port) + 1) + '${SMALL}'`,
    'a compressed response of another origin, which shows the wrong length': `location.origin.replace(/(\\d+)$/, port => Number(port) + 1) + '/as/gzip${SMALL}'`
  }
  for (const worker of [true, false]) {
    test(`of every kind, ${worker ? 'in a worker' : 'in this thread'}`, async ({ shared }) => {
      for (const [name, source] of Object.entries(sources)) {
        await test.step(name, async () => {
          const bytes = await shared.evaluate(async ([source, worker]) => {
            const where = worker ? {} : { worker: false }
            const { info } = await window.load(await (0, eval)(`(async () => ${source})()`), { ...where, cache: 'off' })
            return info.bytes
          }, [source, worker] as const)
          expect(bytes, name).toBe(BYTES)
          await expectRandomModel(shared)
        })
      }
    })
  }
})

test('a model is loaded by its address alone, in a worker of its own', { tag: '@quick' }, async ({ harness }) => {
  const { bytes } = await load(harness, {}, SMALL)
  expect(bytes).toBe(BYTES)
  // Those that stored it have ended.
  await expect.poll(() => harness.workers().length).toBe(1)
  await expectRandomModel(harness)
  await harness.evaluate(() => window.model.dispose())
  await expect.poll(() => harness.workers().length).toBe(0)
})

test('progress never goes back and ends at 1', async ({ shared }) => {
  for (const source of [`/as/slow${SPREAD_MODEL}`, `/as/slow${SPREAD_MODEL}`, `/as/chunked${SPREAD_MODEL}`]) {
    const { reports } = await loadReporting(shared, source)
    expect(reports.length).toBeGreaterThan(2)
    expect(reports.at(-1)).toMatchObject({ phase: expect.stringMatching(/^(ready|stored)$/), fraction: 1 })
    expectNeverBack(reports)
    for (const { bytesPerSecond } of reports) expect(bytesPerSecond).toBeGreaterThanOrEqual(0)
  }
})

test('progress says where the bytes come from', async ({ shared }) => {
  const phases = async () => {
    const { reports } = await loadReporting(shared, `/as/slow${SPREAD_MODEL}`)
    return reports.map(({ phase, fromCache }) => `${phase} ${fromCache}`)
  }
  const first = await phases()
  expect(first.filter(phase => phase === 'download false').length).toBeGreaterThan(3)
  const second = await phases()
  expect(second).toContain('cache true')
  expect(second).not.toContain('download false')
})

test.describe('storage', () => {
  test('the second load needs no network', { tag: '@quick' }, async ({ shared }) => {
    await load(shared, {}, SPREAD_MODEL)
    await expectRandomModel(shared)
    const requests = await server(shared, 'off')
    try {
      await load(shared, { cache: 'only' }, SPREAD_MODEL)
      await expectRandomModel(shared)
      expect(await server(shared, 'count')).toBe(requests)
      // The same with the whole machine offline, where everything else is in the page already.
      await load(shared, { worker: false }, SPREAD_MODEL)
      await shared.context().setOffline(true)
      await load(shared, { worker: false }, SPREAD_MODEL)
      await expectRandomModel(shared)
    } finally {
      await shared.context().setOffline(false)
      await server(shared, 'on')
    }
  })

  test('lists, refreshes, and deletes', { tag: '@quick' }, async ({ shared }) => {
    expect(await storedModels(shared)).toEqual([])
    await load(shared, {}, SMALL)
    const url = new URL(SMALL, shared.url()).href
    const [stored] = await storedModels(shared)
    expect(stored).toMatchObject({ url, bytes: BYTES, complete: true, etag: `"${BYTES}"` })
    const requests = await server(shared, 'count')
    await load(shared, {}, SMALL)
    expect(await server(shared, 'count')).toBe(requests)
    await load(shared, { cache: 'off' }, SMALL)
    expect(await server(shared, 'count')).toBe(requests + 1)
    await load(shared, { cache: 'refresh' }, SMALL)
    expect(await server(shared, 'count')).toBe(requests + 2)
    const again = await storedModels(shared)
    expect(again.length).toBe(1)
    expect(again[0]!.added).toBeGreaterThan(stored!.added)
    await shared.evaluate(url => window.tritloom.BitNet.cache.delete(url), SMALL)
    expect(await storedModels(shared)).toEqual([])
    await load(shared, { cache: 'off' }, SMALL)
    expect(await storedModels(shared)).toEqual([])
    await load(shared, {}, SMALL)
    await shared.evaluate(() => window.tritloom.BitNet.cache.clear())
    expect(await storedModels(shared)).toEqual([])
    expect((await shared.evaluate(() => window.tritloom.BitNet.cache.estimate())).quota).toBeGreaterThan(0)
  })

  test('a compressed response of another origin, which shows the wrong length, is stored', async ({ shared }) => {
    const url = shared.url().replace(/:(\d+).*/, (_, port) => `:${Number(port) + 1}/as/gzip${SMALL}`)
    expect((await loadReporting(shared, url)).kinds).toEqual(['not-resumable', 'restarted'])
    expect((await load(shared, { cache: 'only' }, url)).bytes).toBe(BYTES)
  })

  test('without IndexedDB, models load all the same', async ({ harness }) => {
    await harness.evaluate(() => {
      IDBFactory.prototype.open = () => { throw new DOMException('no storage here', 'SecurityError') }
    })
    expect((await load(harness, { worker: false }, SMALL)).bytes).toBe(BYTES)
    expect((await loadFailure(harness, SMALL, { worker: false, cache: 'only' })).code).toBe('not-cached')
  })

  test('with a full disk, models load all the same', async ({ shared }) => {
    await shared.evaluate(() => {
      StorageManager.prototype.getDirectory = async () => { throw new DOMException('no files here', 'SecurityError') }
      const put = IDBObjectStore.prototype.put
      IDBObjectStore.prototype.put = function (value, key) {
        if (value instanceof Blob) throw new DOMException('full', 'QuotaExceededError')
        return put.call(this, value, key)
      }
    })
    expect((await load(shared, { worker: false }, SMALL)).bytes).toBe(BYTES)
    expect(await storedModels(shared)).toEqual([])
  })
})

test('integrity: the right hash passes, from the network and from storage; a wrong one keeps nothing', async ({ shared }) => {
  const hash = `sha256-${createHash('sha256').update(readFileSync(`.${SMALL}`)).digest('base64')}`
  const wrong = `sha256-${createHash('sha256').update('something else').digest('base64')}`
  const message = `${wrong}, found ${hash}`
  for (const source of [`'${SMALL}'`, `'/as/chunked${SMALL}'`, `await (await fetch('${SMALL}')).blob()`]) {
    const found = await failure(shared, `await load(${source}, { integrity: '${wrong}' })`)
    expect(found.code).toBe('integrity')
    expect(found.message).toContain(message)
  }
  expect(await storedModels(shared)).toEqual([])
  await load(shared, { integrity: hash }, SMALL)
  await load(shared, { integrity: hash, cache: 'only' }, SMALL)
  expect((await loadFailure(shared, SMALL, { integrity: wrong })).code).toBe('integrity')
  expect((await loadFailure(shared, SMALL, { integrity: 'sha512-AAAA' })).code).toBe('bad-option')
})

test.describe('aborting', () => {
  for (const worker of [true, false]) {
    test(`stops the download with the signal's reason, ${worker ? 'in a worker' : 'in this thread'}`, async ({ shared }) => {
      const found = await shared.evaluate(async ([source, worker]) => {
        const { BitNet } = window.tritloom
        const abort = new AbortController()
        const reason = new Error('changed my mind')
        let reports = 0
        const loading = BitNet.load(source, { worker, signal: abort.signal, onProgress: () => { if (++reports === 3) abort.abort(reason) } })
        const why = await loading.catch(error => error)
        const before = reports
        await new Promise(resolve => setTimeout(resolve, 1000))
        const early = await BitNet.load(source, { worker, signal: AbortSignal.abort(reason) }).catch(error => error)
        return { stopped: why === reason, early: early === reason, silent: reports === before }
      }, [`/as/slow${SPREAD_MODEL}`, worker] as const)
      expect(found).toEqual({ stopped: true, early: true, silent: true })
      // The page is fit for another.
      await load(shared, worker ? {} : { worker }, SMALL)
    })
  }
})

test.describe('what cannot be loaded', () => {
  const failures: Record<string, [code: string, message: RegExp, load: string]> = {
    'not a GGUF': ['bad-gguf', /GGUF/, `'/package.json'`],
    'an empty file': ['bad-gguf', /GGUF/, `new Blob([])`],
    'a file cut short': ['bad-gguf', /./, `'/as/short${MODEL}'`],
    'a connection that breaks': ['network', /tiny-stories/, `'/as/cut${MODEL}'`],
    'HTTP 404': ['http', /404.*no-such-model/, `'/models/no-such-model.gguf'`],
    'HTTP 503': ['http', /503/, `'/as/503${MODEL}'`],
    'no connection': ['network', /localhost:9/, `'http://localhost:9/model.gguf'`],
    'no address': ['bad-option', /source/, `'http://'`],
    'no source': ['bad-option', /source/, `42`],
    'an unknown option': ['bad-option', /contxt/, `'${MODEL}', { contxt: 5 }`],
    'an unknown GPU option': ['bad-option', /gpu\.limits\.maxBuffers/, `'${MODEL}', { gpu: { limits: { maxBuffers: 5 } } }`],
    'an option of the wrong type': ['bad-option', /context/, `'${MODEL}', { context: 'large' }`],
    'a context of nothing': ['bad-option', /context/, `'${MODEL}', { context: 0 }`],
    'an unknown way to cache': ['bad-option', /cache/, `'${MODEL}', { cache: 'sometimes' }`],
    'a function as an option': ['bad-option', /./, `'${MODEL}', { onprogress: () => {} }`],
    'an unknown lmHead': ['bad-option', /lmHead.*int8/, `'${MODEL}', { lmHead: 'int4' }`],
    'a worker that is none': ['bad-option', /worker/, `'${MODEL}', { worker: 'yes' }`],
    'a stream of text': ['bad-option', /Uint8Array/, `new ReadableStream({ start(c) { c.enqueue('text'); c.close() } })`],
    'not stored': ['not-cached', /tiny-stories/, `'${MODEL}', { cache: 'only' }`]
  }
  for (const worker of [true, false]) {
    test(`fails with its code, ${worker ? 'in a worker' : 'in this thread'}`, async ({ shared }) => {
      for (const [name, [code, message, args]] of Object.entries(failures)) {
        if (!worker && name === 'a worker that is none') continue
        const call = worker ? `await load(${args})` : `const [source, options] = [${args}]; await load(source, { ...options, worker: false })`
        const found = await failure(shared, call)
        expect(found, name).toMatchObject({ code, message: expect.stringMatching(message) })
      }
      // Nothing of it stays, and the page is fit for a model.
      expect(await storedModels(shared)).toEqual([])
      await load(shared, worker ? {} : { worker }, SMALL)
    })
  }

  test('a ternary tensor with a code that means nothing', async ({ shared }) => {
    const found = await failure(shared, `
      const bytes = new Uint8Array(await (await fetch('${SMALL}')).arrayBuffer())
      bytes[Math.floor(bytes.length * 0.6)] = 0xff
      await load(bytes)`)
    expect(found).toMatchObject({ code: 'bad-gguf', message: expect.stringMatching(/blk\.\d+\..*code 3/) })
    await load(shared, {}, SMALL)
  })

  test('hostile files', async ({ shared }) => {
    const manifest: Record<string, { expect: string }> = JSON.parse(readFileSync('tests/data/hostile/manifest.json', 'utf8'))
    for (const name of Object.keys(manifest)) {
      // The good ones are GGUF files, but no models.
      const code = manifest[name]!.expect === 'ok' ? /^(bad-gguf|unsupported-model)$/ : /^(bad-gguf|unsupported-model|tensor-shape)$/
      const found = await loadFailure(shared, `/tests/data/hostile/${name}.gguf`, { cache: 'off' })
      expect(found.code, name).toMatch(code)
    }
    // The page is none the worse.
    await load(shared, {}, SMALL)
  })
})

test.describe('without WebGPU', () => {
  test('a browser that has none', async ({ harness }) => {
    await harness.evaluate(() => { delete (Navigator.prototype as { gpu?: unknown }).gpu })
    const found = await loadFailure(harness, MODEL, { backend: 'webgpu', worker: false })
    expect(found).toMatchObject({ code: 'no-webgpu', message: expect.stringContaining('WebGPU') })
    const availability = await harness.evaluate(() => window.tritloom.BitNet.availability())
    const webgpu = { available: false, reason: expect.stringContaining('no WebGPU') }
    expect(availability).toMatchObject({ available: true, backend: 'cpu', backends: { webgpu, cpu: { available: true } } })
    const nothing = await harness.evaluate(() => {
      WebAssembly.validate = () => false
      return window.tritloom.BitNet.availability()
    })
    expect(nothing).toMatchObject({ available: false, reason: expect.stringMatching(/no WebGPU.*; .*with SIMD/) })
    expect(nothing.backend).toBe(undefined)
  })

  test('a browser that has no adapter', async ({ harness }) => {
    await harness.evaluate(() => { GPU.prototype.requestAdapter = async () => null })
    expect((await loadFailure(harness, MODEL, { backend: 'webgpu', worker: false })).code).toBe('no-adapter')
    const availability = await harness.evaluate(() => window.tritloom.BitNet.availability())
    const webgpu = { available: false, reason: expect.stringContaining('adapter') }
    expect(availability).toMatchObject({ available: true, backend: 'cpu', backends: { webgpu, cpu: { available: true } } })
  })

  test('a real browser with WebGPU switched off, in a worker: the CPU computes', async ({ playwright, baseURL }) => {
    const executablePath = test.info().project.use.launchOptions!.executablePath!
    const args = ['--no-sandbox', '--disable-gpu', '--disable-features=WebGPU,WebGPUService']
    const browser = await playwright.chromium.launch({ executablePath, args })
    try {
      const page = await browser.newPage({ baseURL: baseURL! })
      await page.goto('/tests/web/harness.html')
      await page.waitForFunction(() => window.tritloom)
      expect((await loadFailure(page, MODEL, { backend: 'webgpu' })).code).toMatch(/^no-(webgpu|adapter)$/)
      const { backend, notes } = await load(page, { backend: 'auto' }, GOLDEN_MODEL)
      expect({ backend, notes }).toEqual({ backend: 'cpu', notes: [expect.stringMatching(/^the CPU computes: this browser has /)] })
      const golden = goldens.find(({ name }) => name === 'who')!
      expect((await continuation(page, golden)).text).toBe(golden.greedy_text)
    } finally {
      await browser.close()
    }
  })
})

test('availability describes the adapter', async ({ shared }) => {
  const found = await shared.evaluate(() => window.tritloom.BitNet.availability())
  expect(found).toMatchObject({ available: true, software: true, adapter: expect.stringMatching(/swiftshader/i) })
  expect(found.features).toContain('subgroups')
  expect(found.limits.maxStorageBufferBindingSize).toBeGreaterThanOrEqual(128 << 20)
  // The CPU's own code is faster than that adapter.
  expect(found).toMatchObject({ backend: 'cpu', backends: { webgpu: { available: true }, cpu: { available: true } } })
  expect(found.backends.cpu.tokensPerSecond).toBe(undefined)
})

test('availability estimates the speed of a model by its size', async ({ harness }) => {
  const [small, large] = await harness.evaluate(async () => {
    const { availability } = window.tritloom.BitNet
    return [await availability({ bytes: 1e8 }), await availability({ bytes: 1e10 })]
  })
  for (const name of ['webgpu', 'cpu'] as const) {
    const [fast, slow] = [small!.backends[name].tokensPerSecond!, large!.backends[name].tokensPerSecond!]
    expect(slow, name).toBeGreaterThan(0)
    // Ten gigabytes take a hundred times as long as a hundred megabytes, but for other work of the machine.
    expect(fast / slow, name).toBeGreaterThan(10)
  }
  expect(await failure(harness, `await BitNet.availability({ bytes: -1 })`)).toMatchObject({ code: 'bad-option', message: expect.stringMatching(/`bytes`/) })
  expect((await failure(harness, `await BitNet.availability({ size: 1 })`)).code).toBe('bad-option')
})

test('with `strict`, nothing is taken that was not asked for', async ({ shared }) => {
  const software = { features: { software: true } }
  expect(await loadFailure(shared, GOLDEN_MODEL, { backend: 'webgpu', strict: true })).toEqual({
    code: 'no-adapter', message: expect.stringMatching(/swiftshader.*strict/i)
  })
  expect(await loadFailure(shared, GOLDEN_MODEL, { backend: 'webgpu', strict: true, gpu: software })).toEqual({
    code: 'bad-option', message: expect.stringMatching(/template.*`bitnet`/)
  })
  const asked: LoadOptions = { backend: 'webgpu', strict: true, gpu: software, template: 'builtin' }
  expect((await load(shared, asked, GOLDEN_MODEL)).template).toBe('builtin: bitnet')
})

test('a deterministic model gives the same bits in another load, after and beside other calls', async ({ shared }) => {
  const run = async (others: boolean) => {
    await load(shared, { deterministic: true, worker: false }, GOLDEN_MODEL)
    return shared.evaluate(async others => {
      const story = 'Once upon a time there was a little boat that was afraid of water. '.repeat(5)
      const texts = [story, `${story}It`, story.slice(0, 200)]
      if (others) await Promise.all(texts.map(text => window.model.generate(text, { maxTokens: 9, raw: true }).text()))
      const asked = window.model.generate(story, { maxTokens: 12, logprobs: 3, raw: true })
      if (others) for (const text of texts) window.model.generate(text, { maxTokens: 5, raw: true }).text()
      const tokens = []
      for await (const { id, logprob, top } of asked.tokens()) tokens.push({ id, logprob, top })
      return tokens
    }, others)
  }
  const alone = await run(false)
  expect(alone.length).toBe(12)
  expect(await run(true)).toEqual(alone)
})

test('a browser whose streams cannot fill our buffers loads the same', async ({ shared }) => {
  await shared.evaluate(() => { Object.defineProperty(globalThis, 'ReadableStreamBYOBReader', { configurable: true, value: undefined }) })
  for (const cache of ['use', 'only'] as const) {
    await load(shared, { worker: false, cache }, SPREAD_MODEL)
    await expectRandomModel(shared)
  }
})
