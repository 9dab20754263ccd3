// Workers: the package's own, the caller's, of another origin, of another release; and how they
// end.
import { expect, failure, GOLDEN_MODEL, load, loadFailure, loadReporting, RANDOM_MODEL, test } from './harness'
import { PORT } from './ports'

test.use({ backend: 'cpu' })

test("a caller's own worker, for one model after the other", async ({ harness }) => {
  const found = await harness.evaluate(async url => {
    const { BitNet } = window.tritloom
    const worker = new Worker('/pkg/protocol/worker.js', { type: 'module' })
    const code = (work: Promise<unknown>) => work.then(() => 'none', error => error.code)
    const first = await BitNet.load(url, { worker })
    const second = await code(BitNet.load(url, { worker }))
    const logits = await first.logits(Uint32Array.of(1))
    await first.dispose()
    const third = await BitNet.load(url, { worker })
    return [second, logits.length, (await third.logits(Uint32Array.of(1))).length, await code(first.logits(Uint32Array.of(1)))]
  }, RANDOM_MODEL)
  expect(found).toEqual(['bad-option', 320, 320, 'disposed'])
})

test('a worker that is killed rejects what is in flight and what comes', async ({ harness }) => {
  const found = await harness.evaluate(async url => {
    const { BitNet } = window.tritloom
    const worker = new Worker('/pkg/protocol/worker.js', { type: 'module' })
    const model = await BitNet.load(url, { worker })
    const generation = model.generate('Once there was', { raw: true })
    await generation.tokens().next()
    worker.terminate()
    const code = (work: Promise<unknown>) => work.then(() => 'none', error => error.code)
    return [await code(generation.stats), await code(model.tokenize('x'))]
  }, GOLDEN_MODEL)
  expect(found).toEqual(['internal', 'internal'])
})

test('errors of a script of the caller\'s in its worker are no errors of the model', async ({ page }) => {
  await page.goto('/tests/web/harness.html')
  await page.waitForFunction(() => window.tritloom)
  const found = await page.evaluate(async url => {
    const script = `import '${location.origin}/pkg/protocol/worker.js'; addEventListener('message', ({ data }) => { if (data.method !== 'generate') return; Promise.reject(new Error('bang')); throw new Error('boom') })`
    const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })), { type: 'module' })
    const model = await window.tritloom.BitNet.load(url, { worker })
    const errors: string[] = []
    worker.addEventListener('error', event => {
      errors.push(event.message)
      event.preventDefault()
    })
    const text = await model.generate('Who are you?', { maxTokens: 3 }).text().catch(error => [error.code, error.message])
    const { length } = await model.tokenize('still here')
    await model.dispose()
    // It was freed: another one fits into the worker.
    const next = await window.tritloom.BitNet.load(url, { worker })
    await next.dispose()
    return { text, length, errors }
  }, GOLDEN_MODEL)
  expect(found).toEqual({ text: expect.stringMatching(/./), length: expect.any(Number), errors: [expect.stringContaining('boom')] })
})

test('a worker script that does not load is an error, not a wait', async ({ harness }) => {
  const found = await failure(harness, `await BitNet.load('${RANDOM_MODEL}', { worker: new Worker('/no-such-worker.js', { type: 'module' }) })`)
  expect(found.code).toBe('network')
})

test('nor is one whose other script does not load, and the next load tries again', async ({ context, harness }) => {
  await context.route('**/pkg/protocol/answer.js', route => route.abort())
  expect(await loadFailure(harness, RANDOM_MODEL, { worker: true })).toEqual({
    code: 'network', message: 'the worker\'s script could not be loaded; `worker: false` does without it'
  })
  await context.unroute('**/pkg/protocol/answer.js')
  await load(harness, {}, RANDOM_MODEL)
})

test('a page that may make no worker is told so', async ({ shared }) => {
  await shared.evaluate(() => {
    globalThis.Worker = class { constructor() { throw new TypeError('not allowed here') } } as never
  })
  const found = await shared.evaluate(url => window.tritloom.BitNet.load(url).then(() => 'none', error =>
    ({ code: error.code, message: error.message, cause: String(error.cause) })), RANDOM_MODEL)
  expect(found).toEqual({
    code: 'network', message: 'the worker\'s script could not be loaded: not allowed here; `worker: false` does without it',
    cause: 'TypeError: not allowed here'
  })
})

test('a worker of another script is refused, not waited for', async ({ page }) => {
  // It is given a minute.
  await page.clock.install()
  await page.goto('/tests/web/harness.html')
  await page.waitForFunction(() => window.tritloom)
  const refused = failure(page, `
    const script = URL.createObjectURL(new Blob(['postMessage(null); postMessage({ kind: "result", id: -1 })']))
    await BitNet.load('${RANDOM_MODEL}', { worker: new Worker(script) })`)
  await expect.poll(() => page.workers().length).toBe(1)
  await page.clock.runFor(61_000)
  expect(await refused).toMatchObject({ code: 'bad-option', message: expect.stringContaining('`worker`: it does not answer') })
})

test('the package from another origin, as from a CDN', async ({ page }) => {
  await page.goto('/tests/web/harness.html')
  const bytes = await page.evaluate(async url => {
    const origin = location.origin.replace(/(\d+)$/, port => String(Number(port) + 1))
    const { BitNet } = await import(`${origin}/pkg/index.js`) as typeof import('../../pkg/index.js')
    const model = await BitNet.load(url)
    return model.info.bytes
  }, RANDOM_MODEL)
  expect(bytes).toBe(555_936)
})

test('the package from another origin: a thread for storage that does not load is no error of the load', async ({ page, context }) => {
  await context.route('**/pkg/threads/disk-worker.js', route => route.abort())
  await page.goto('/tests/web/harness.html')
  const stored = await page.evaluate(async url => {
    const origin = location.origin.replace(/(\d+)$/, port => String(Number(port) + 1))
    const { BitNet } = await import(`${origin}/pkg/index.js`) as typeof import('../../pkg/index.js')
    const model = await BitNet.load(url)
    await model.stored
    await model.logits(Uint32Array.of(1))
    return BitNet.cache.list()
  }, RANDOM_MODEL)
  expect(stored).toMatchObject([{ complete: true }])
})

test('in a page without https, a load says what is missing, and the CPU computes', async ({ page, context }) => {
  await context.route('http://insecure.test/**', async route => {
    const { pathname } = new URL(route.request().url())
    await route.fulfill({ response: await route.fetch({ url: `http://localhost:${PORT}${pathname}` }) })
  })
  await page.goto('http://insecure.test/tests/web/harness.html')
  await page.waitForFunction(() => window.tritloom)
  for (const worker of [true, false]) {
    const found = await failure(page, `await BitNet.load('${RANDOM_MODEL}', { backend: 'webgpu', worker: ${worker} })`)
    expect(found).toEqual({ code: 'no-webgpu', message: expect.stringContaining('https') })
    const options = { backend: 'auto', worker, cache: 'use' } as const
    const { notes } = await loadReporting(page, GOLDEN_MODEL, options)
    expect(notes).toEqual([expect.objectContaining({ kind: 'cpu' }), { kind: 'not-stored', why: expect.stringContaining('https') }])
    // Ids of calls and of completions need no https.
    const ids = await page.evaluate(async () => {
      const tools = [{ name: 'look', parameters: { type: 'object', properties: {}, additionalProperties: false } }]
      const answer = window.model.generate('Who are you?', { tools, toolChoice: 'required' })
      const [call] = await answer.toolCalls()
      const { id } = await window.model.chat.completions.create({ messages: [{ role: 'user', content: 'Who are you?' }], max_tokens: 1 })
      return [call!.id, id]
    })
    expect(ids).toEqual([expect.stringMatching(/^call_[0-9a-f]{24}$/), expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/)])
  }
})

test("a worker of the package's own that fails is ended, and with it what it has of the GPU", async ({ page }) => {
  await page.goto('/tests/web/harness.html')
  await page.waitForFunction(() => window.tritloom)
  const code = await page.evaluate(async url => {
    const script = `import '${location.origin}/pkg/protocol/worker.js'; addEventListener('message', ({ data }) => { if (data.method === 'logits') throw new Error('boom') })`
    const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))
    window.Worker = class extends Worker {
      constructor(_: string | URL, options?: WorkerOptions) {
        super(address, options)
      }
    }
    window.model = await window.tritloom.BitNet.load(url, { backend: 'webgpu' })
    return window.model.logits(Uint32Array.of(1)).then(() => 'none', error => error.code)
  }, RANDOM_MODEL)
  expect(code).toBe('internal')
  await expect.poll(() => page.workers().length).toBe(0)
})

test('a worker of another release is refused, with both versions', async ({ shared }) => {
  const found = await shared.evaluate(async url => {
    // The package's worker, but for the version in its answer to `hello`, which keeps its shape for
    // ever.
    const script = `
      const { postMessage } = self
      self.postMessage = (message, ...rest) => {
        if (message?.result?.version) message = { ...message, result: { ...message.result, version: message.result.version - 1 } }
        postMessage.call(self, message, ...rest)
      }
      await import('${location.origin}/pkg/protocol/worker.js')
      postMessage.call(self, 'ready')`
    const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })), { type: 'module' })
    await new Promise(resolve => worker.addEventListener('message', resolve, { once: true }))
    const { version } = await new Promise<{ version: number }>(resolve => {
      worker.addEventListener('message', ({ data }) => { if (data.result?.version) resolve(data.result) })
      void window.tritloom.BitNet.load(url, { worker }).catch(() => {})
    })
    const error = await window.tritloom.BitNet.load(url, { worker }).then(() => undefined, error => error)
    worker.terminate()
    return { code: error?.code, message: error?.message as string, version }
  }, RANDOM_MODEL)
  expect(found.code).toBe('internal')
  expect(found.message).toMatch(new RegExp(`version ${found.version}\\b.*${found.version + 1}\\b`))
})

// A server that gives the crate another type makes it one module from bytes among others.
for (const type of ['application/wasm', 'application/octet-stream']) {
  test(`crashes of the crate and of other modules are told apart, with the crate as ${type}`, async ({ page, context }) => {
    await context.route('**/pkg/tritloom_bg.wasm', async route => {
      const response = await route.fetch()
      await route.fulfill({ response, headers: { ...response.headers(), 'content-type': type } })
    })
    await page.goto('/tests/web/harness.html')
    await page.waitForFunction(() => window.tritloom)
    const found = await page.evaluate(async url => {
      const { BitNet } = window.tritloom
      const model = await BitNet.load(url, { backend: 'webgpu', worker: false })
      // (module (func (export "f") unreachable)), under an address of its own and without one.
      const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11)
      const address = URL.createObjectURL(new Blob([bytes], { type: 'application/wasm' }))
      // A browser would give one of the same bytes the same address, so this one exports "g".
      const differing = Uint8Array.from(bytes, byte => byte === 102 ? 103 : byte)
      const errors: string[] = []
      for (const other of [await WebAssembly.instantiateStreaming(fetch(address)), await WebAssembly.instantiate(differing)]) {
        const trapped = new Promise<string>(resolve => addEventListener('error', event => {
          event.preventDefault()
          resolve(String(event.error))
        }, { once: true }))
        setTimeout(Object.values(other.instance.exports)[0] as () => void)
        errors.push(await trapped)
      }
      const { length } = await model.tokenize('still here')

      // It stands for a bug of the package: there can be no exception here.
      GPUQueue.prototype.submit = () => { throw new Error('nonsense') }
      const code = (work: Promise<unknown>) => work.then(() => 'none', error => error.code)
      const codes = [await code(model.logits(Uint32Array.of(1))), await code(model.tokenize('x'))]
      return { errors, isAnswered: length > 0, codes }
    }, RANDOM_MODEL)
    const trap = 'RuntimeError: unreachable'
    expect(found).toEqual({ errors: [trap, trap], isAnswered: true, codes: ['internal', 'internal'] })
  })
}

test("an error of the page's onProgress is the page's, and the load goes on", async ({ shared }) => {
  const found = await shared.evaluate(async url => {
    const errors: string[] = []
    const onError = (event: ErrorEvent) => {
      event.preventDefault()
      errors.push(event.message)
    }
    addEventListener('error', onError)
    const onProgress = () => { throw new Error('boom') }
    const model = await window.tritloom.BitNet.load(url, { worker: false, onProgress })
    await model.stored
    removeEventListener('error', onError)
    const { length } = await model.tokenize('still here')
    await model.dispose()
    return { errors: [...new Set(errors)], isAnswered: length > 0 }
  }, RANDOM_MODEL)
  expect(found).toEqual({ errors: ['Uncaught Error: boom'], isAnswered: true })
})

test('a script of the package that cannot be fetched is an error of the package, with its cause', async ({ page, context }) => {
  await context.route('**/pkg/{openai/server,page/availability,page/cache,page/summarize}.js', route => route.abort())
  await page.goto('/tests/web/harness.html')
  await page.waitForFunction(() => window.tritloom)
  const found = await page.evaluate(async url => {
    const { BitNet, BitNetError } = window.tritloom
    const model = await BitNet.load(url)
    const told = (work: Promise<unknown>) => work.then(() => 'none', error =>
      [error instanceof BitNetError, error.code, error.cause instanceof TypeError])
    const failures = await Promise.all([
      told(model.chat.completions.create({ messages: [{ role: 'user', content: 'Hi' }] })), told(model.summarize('A text.').text()),
      told(model.fetch('/v1/models')), told(BitNet.cache.list())
    ])
    return { failures, availability: await BitNet.availability() }
  }, RANDOM_MODEL)
  expect(found.failures).toEqual(Array(4).fill([true, 'network', true]))
  // This one never rejects.
  expect(found.availability).toMatchObject({ available: false, reason: expect.stringMatching(/script.*could not be loaded/) })
})
