// Losing the GPU: what runs fails and says so, what comes next goes on where the model was. Each
// loss is followed by a new device, which compiles the kernels anew: so some tests take over ten seconds.
import {
  bundledGoldens, expect, failure, GOLDEN_MODEL, goldens, load, MODEL, RANDOM_MODEL, scripted, server, test
} from './harness'
import { inBytes, leastBytes } from './elsewhere'
import type { Page } from '@playwright/test'

type Where = 'a worker' | "the caller's worker" | 'this thread'

declare global {
  interface Window {
    /** Does something to the devices of the model's thread: see lost-devices.mjs. */
    gpu(what: 'lose' | 'none' | 'some'): Promise<void>
    /** Loads a model into a thread whose devices can be lost. */
    loadThere(source: unknown, options?: object): Promise<import('../../pkg/index.js').BitNet>
    codeOf(work: Promise<unknown>): Promise<string>
  }
}

/** Makes every device of the model's thread one that can be lost. */
const prepare = (page: Page, where: Where) => page.evaluate(async where => {
  const script = (url: string) =>
    URL.createObjectURL(new Blob([`import '${location.origin}/tests/web/lost-devices.mjs'; import '${url}'`], { type: 'text/javascript' }))
  const url = `${location.origin}/pkg/protocol/worker.js`
  if (where === 'this thread') await import(`${location.origin}/tests/web/lost-devices.mjs`)
  if (where === 'a worker') {
    window.Worker = class extends Worker {
      constructor(url: string | URL, options?: WorkerOptions) {
        super(script(String(url)), options)
      }
    }
  }
  const thread = () => where === 'this thread' ? false : where === 'a worker' ? true : new Worker(script(url), { type: 'module' })
  window.loadThere = (source, options) => window.tritloom.BitNet.load(source as string, { backend: 'webgpu', ...options, worker: thread() })
  const channel = new BroadcastChannel('gpu')
  window.gpu = what => new Promise(resolve => {
    channel.onmessage = () => resolve()
    channel.postMessage(what)
  })
  window.codeOf = work => work.then(() => 'none', error => error.code ?? String(error))
}, where)

for (const where of ['a worker', "the caller's worker", 'this thread'] as const) {
  test(`a chat goes on as if nothing had happened, in ${where}`, async ({ harness }) => {
    await prepare(harness, where)
    const golden = (name: string) => goldens.find(golden => golden.name === name)!
    const found = await harness.evaluate(async ([url, who]) => {
      const model = await window.loadThere(url)
      const begin = () => model.createChat({ system: 'Answer like a sailor.' })
      const ids = async (generation: import('../../pkg/index.js').Generation) => {
        const ids = []
        for await (const { id } of generation.tokens()) if (id !== undefined) ids.push(id)
        return ids
      }
      const [first, second] = ['Where is the boat?', 'How small?']
      const undisturbed = begin()
      const expected = [await ids(undisturbed.send(first!)), await ids(undisturbed.send(second!, { maxTokens: 5 }))]

      const chat = begin()
      const losses: unknown[] = []
      const nextLoss = () => model.lost.then(loss => losses.push(loss))

      // In the middle of an answer, while another runs with it and a call waits.
      let loss = nextLoss()
      const broken = chat.send(first!)
      const together = window.codeOf(begin().send(first!).stats)
      const waiting = model.logits(Uint32Array.from(who)).then(logits => logits.indexOf(Math.max(...logits)))
      const tokens = broken.tokens()
      for (let n = 0; n < 5; n++) await tokens.next()
      void window.gpu('lose')
      const code = await window.codeOf(broken.stats)
      const rest = await window.codeOf((async () => { for await (const token of tokens) void token })())
      await loss
      const waited = await waiting
      const remembered = chat.messages.length
      const answers = [await ids(chat.send(first!))]

      // While nothing runs.
      loss = nextLoss()
      void window.gpu('lose')
      await loss
      const last = chat.send(second!, { maxTokens: 5 })
      answers.push(await ids(last))
      const { reusedTokens: reused } = await last.stats
      const messages = chat.messages.length
      await model.dispose()
      return { code, rest, together: await together, waited, remembered, losses, answers, expected, reused, messages }
    }, [GOLDEN_MODEL, golden('who').ids] as const)
    expect(found.answers).toEqual(found.expected)
    expect(found.answers[0]).toEqual(golden('system').greedy.slice(0, -1))
    expect(found).toMatchObject({
      code: 'device-lost', rest: 'device-lost', together: 'device-lost', remembered: 1, reused: 0, messages: 5, waited: golden('who').greedy[0]
    })
    const loss = { reason: 'destroyed', message: expect.any(String) }
    expect(found.losses).toEqual([loss, loss])
  })
}

test('a restored model gives the golden text, from storage alone', async ({ harness }) => {
  await prepare(harness, 'a worker')
  const golden = goldens.find(({ name }) => name === 'who')!
  await harness.evaluate(async url => { window.model = await window.loadThere(url, { cache: 'refresh' }) }, GOLDEN_MODEL)
  const requests = await server(harness, 'off')
  try {
    const text = await harness.evaluate(async ([ids, maxTokens]) => {
      const lost = window.model.lost
      void window.gpu('lose')
      await lost
      return window.model.generate(Uint32Array.from(ids), { maxTokens }).text()
    }, [golden.ids, golden.greedy.length] as const)
    expect(text).toBe(golden.greedy_text)
    expect(await server(harness, 'count')).toBe(requests)
  } finally {
    await server(harness, 'on')
  }
})

test('a restored model has its adapters, or those that are chosen while the GPU is lost', async ({ harness }) => {
  await prepare(harness, 'this thread')
  const found = await harness.evaluate(async ([url, source]) => {
    const model = await window.loadThere(url)
    const logits = async () => String([...await model.logits(Uint32Array.of(1, 2, 3))])
    const lose = async () => {
      const { lost } = model
      void window.gpu('lose')
      await lost
    }
    const alone = await logits()
    await model.setAdapters([{ adapter: await model.loadAdapter(source), scale: 0.5 }])
    const adapted = await logits()
    const hash = model.adaptersHash
    await lose()
    const restored = [await logits(), model.adaptersHash]
    await lose()
    // The first call after the loss: it restores the model.
    await model.setAdapters([])
    const without = [await logits(), model.adaptersHash]
    await model.dispose()
    return [adapted !== alone, restored[0] === adapted && restored[1] === hash, without[0] === alone && without[1] === '']
  }, ['/tests/data/models/qwen3-q2_0.gguf', '/tests/data/lora/qwen3-r8.gguf'] as const)
  expect(found).toEqual([true, true, true])
})

test('a model whose layers stream is lost and let go in the middle of an answer', async ({ harness }) => {
  await prepare(harness, 'a worker')
  const golden = bundledGoldens.prompts.find(({ name }) => name === 'who')!
  const found = await harness.evaluate(async ([url, options, prompt, maxTokens]) => {
    const model = await window.loadThere(url, options)
    const ids = Uint32Array.from(prompt)
    const begun = async () => {
      const generation = model.generate(ids, { maxTokens: 64 })
      const tokens = generation.tokens()
      for (let n = 0; n < 2; n++) await tokens.next()
      return generation
    }
    const lost = await begun()
    // A prompt waits behind it, and is computed on the next device.
    const waiting = model.logits(ids).then(logits => logits.indexOf(Math.max(...logits)))
    void window.gpu('lose')
    const codes = [await window.codeOf(lost.stats)]
    const waited = await waiting
    const tokens = []
    for await (const { id } of model.generate(ids, { maxTokens }).tokens()) tokens.push(id)
    const { streamedLayers } = model.info
    const disposed = await begun()
    await model.dispose()
    codes.push(await window.codeOf(disposed.stats))
    return { codes, waited, tokens, streamedLayers }
  }, [MODEL, inBytes(await leastBytes(harness)), golden.ids, 4] as const)
  expect(found).toEqual({
    codes: ['device-lost', 'disposed'], waited: golden.greedy[0], tokens: golden.greedy.slice(0, 4), streamedLayers: expect.any(Number)
  })
  expect(found.streamedLayers).toBeGreaterThan(0)
})

test('every source that can be read again brings the model back, and a stream says that it cannot', async ({ harness }) => {
  const fetched = `(await fetch('${RANDOM_MODEL}'))`
  // A File is a Blob, and bytes cross to a worker as one.
  const sources: [name: string, where: Where, source: string, code: string][] = [
    ['a Blob', "the caller's worker", `await ${fetched}.blob()`, 'none'],
    ['a Uint8Array', "the caller's worker", `new Uint8Array(await ${fetched}.arrayBuffer())`, 'none'],
    ['a blob: address', "the caller's worker", `URL.createObjectURL(await ${fetched}.blob())`, 'none'],
    ['a Request', "the caller's worker", `new Request('${RANDOM_MODEL}', { headers: { 'x-test': '1' } })`, 'none'],
    ['a ReadableStream', "the caller's worker", `${fetched}.body`, 'device-lost'],
    ['an ArrayBuffer', 'this thread', `await ${fetched}.arrayBuffer()`, 'none']
  ]
  for (const [name, where, source, code] of sources) {
    await prepare(harness, where)
    await test.step(`${name}, ${where}`, async () => {
      const found = await harness.evaluate(async source => {
        const model = await window.loadThere(await (0, eval)(`(async () => ${source})()`), { cache: 'off' })
        const before = [...await model.logits(Uint32Array.of(1, 2, 3))]
        const lost = model.lost
        void window.gpu('lose')
        await lost
        let message = ''
        const again = model.logits(Uint32Array.of(1, 2, 3)).catch(error => { message = error.message; throw error })
        const code = await window.codeOf(again)
        const same = code === 'none' && String([...await again]) === String(before)
        const later = await window.codeOf(model.logits(Uint32Array.of(1)))
        await model.dispose()
        return { code, same, later, message }
      }, source)
      expect(found).toMatchObject({ code, same: code === 'none', later: code })
      if (code !== 'none') expect(found.message).toContain('stream')
    })
  }
})

test('a model that cannot be restored says why, and a later call tries again', async ({ harness }) => {
  await prepare(harness, "the caller's worker")
  const load = (cache: string) => harness.evaluate(async ([url, cache]) => {
    window.model = await window.loadThere(url, { cache })
  }, [RANDOM_MODEL, cache] as const)
  const lose = () => harness.evaluate(async () => {
    const lost = window.model.lost
    void window.gpu('lose')
    await lost
  })
  const call = () => failure(harness, `await model.logits(Uint32Array.of(1))`)

  await load('use')
  await lose()
  await harness.evaluate(() => window.gpu('none'))
  expect((await call()).code).toBe('no-adapter')
  expect((await call()).code).toBe('no-adapter')
  await harness.evaluate(() => window.gpu('some'))
  expect((await call()).code).toBe('none')

  // Neither stored nor on the network.
  await lose()
  await harness.evaluate(url => window.tritloom.BitNet.cache.delete(url), RANDOM_MODEL)
  await server(harness, 'off')
  expect((await call()).code).toBe('network')
  await server(harness, 'on')
  expect((await call()).code).toBe('none')
  await harness.evaluate(() => window.model.dispose())

  await load('only')
  await lose()
  await harness.evaluate(url => window.tritloom.BitNet.cache.delete(url), RANDOM_MODEL)
  expect((await call()).code).toBe('not-cached')
  await harness.evaluate(() => window.model.dispose())

  // Another file under the same address: its answers would be another model's.
  await load('off')
  await lose()
  const url = new URL(RANDOM_MODEL, harness.url()).href
  await harness.context().route(url, route => route.continue({ url: new URL(GOLDEN_MODEL, harness.url()).href }))
  expect(await call()).toMatchObject({ code: 'integrity' })
  await harness.context().unroute(url)
  expect((await call()).code).toBe('none')
})

test('a model is restored in the version that was loaded, not in another one with the same header', async ({ harness }) => {
  await prepare(harness, 'this thread')
  // The other version has another value in its last norm, which all logits depend on.
  const [first, second] = [{ always: { etag: '"a"' } }, { always: { etag: '"b"', change: 554_914 } }]
  const { url, rewrite } = await scripted(harness, first, RANDOM_MODEL)
  const logits = () => harness.evaluate(async () => [...await window.model.logits(Uint32Array.of(1, 2, 3))])
  await harness.evaluate(async url => {
    window.model = await window.loadThere(url)
    await window.model.stored
  }, url)
  const expected = await logits()
  await rewrite(second)
  // Another load replaces the stored file.
  const other = await harness.evaluate(async url => {
    const model = await window.loadThere(url, { cache: 'refresh' })
    await model.stored
    const logits = [...await model.logits(Uint32Array.of(1, 2, 3))]
    await model.dispose()
    return logits
  }, url)
  expect(other).not.toEqual(expected)
  await harness.evaluate(async () => {
    const lost = window.model.lost
    void window.gpu('lose')
    await lost
  })
  const found = await failure(harness, 'await model.logits(Uint32Array.of(1))')
  expect(found).toEqual({ code: 'integrity', message: expect.stringContaining('the version of') })
  // The server has the first version again, and the storage still has the other one.
  await rewrite(first)
  expect(await logits()).toEqual(expected)
})

test('disposing and aborting end a restore in progress', async ({ harness }) => {
  for (const where of ["the caller's worker", 'this thread'] as const) {
    await prepare(harness, where)
    const found = await harness.evaluate(async url => {
      const load = async () => {
        const model = await window.loadThere(url, { cache: 'off' })
        const lost = model.lost
        void window.gpu('lose')
        await lost
        return model
      }
      const soon = () => new Promise(resolve => setTimeout(resolve, 300))
      const model = await load()
      // The server is slow: the bytes take a second.
      const abort = new AbortController()
      const aborted = model.generate('Who are you?', { signal: abort.signal })
      await soon()
      abort.abort(new Error('changed my mind'))
      const why = await aborted.text().catch(error => error.message)
      const { finishReason } = await aborted.stats
      const restored = await model.generate('Who are you?', { maxTokens: 4 }).text()

      const lost = model.lost
      void window.gpu('lose')
      await lost
      const call = model.logits(Uint32Array.of(1))
      await soon()
      await model.dispose()
      const codes = [await window.codeOf(call), await window.codeOf(model.logits(Uint32Array.of(1)))]

      const other = await load()
      await other.dispose()
      codes.push(await window.codeOf(other.logits(Uint32Array.of(1))))
      return { why, finishReason, restored, codes }
    }, `/as/slow${GOLDEN_MODEL}`)
    expect(found).toMatchObject({ why: 'changed my mind', finishReason: 'abort', codes: ['disposed', 'disposed', 'disposed'] })
    expect(found.restored).not.toBe('')
  }
})

test('disposing in the middle of an answer is no loss', async ({ harness }) => {
  await prepare(harness, 'this thread')
  const found = await harness.evaluate(async url => {
    const model = await window.loadThere(url)
    let lost = false
    model.lost.then(() => { lost = true })
    const generation = model.generate('Once there was', { raw: true })
    await generation.tokens().next()
    await model.dispose()
    const code = await window.codeOf(generation.stats)
    await new Promise(resolve => setTimeout(resolve, 500))
    return { code, lost }
  }, GOLDEN_MODEL)
  expect(found).toEqual({ code: 'disposed', lost: false })
})

test("the death of the browser's GPU process is a loss like any other", async ({ playwright, baseURL }) => {
  const golden = bundledGoldens.prompts.find(({ name }) => name === 'who')!
  // A browser of its own, which the other tests do not miss.
  const browser = await playwright.chromium.launch(test.info().project.use.launchOptions)
  try {
    const page = await browser.newPage({ baseURL })
    await page.goto('/tests/web/harness.html')
    await page.waitForFunction(() => window.tritloom)
    const answer = (ids: number[], maxTokens: number) => page.evaluate(async ([url, ids, maxTokens]) => {
      window.model ??= await window.tritloom.BitNet.load(url, { backend: 'webgpu' })
      const lost = window.model.lost
      const generation = window.model.generate(Uint32Array.from(ids), { maxTokens })
      return generation.text().catch(async error => `${error.code}, ${(await lost).reason}, ${error.message}`)
    }, [MODEL, ids, maxTokens] as const)
    const broken = answer(bundledGoldens.prompts[0]!.ids, 500)
    await page.waitForFunction(() => window.model)
    const session = await browser.newBrowserCDPSession()
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    process.kill(processInfo.find(({ type }) => type === 'GPU')!.id, 'SIGKILL')
    // In plain words, not in wgpu's for the read that fails.
    expect(await broken).toMatch(/^device-lost, unknown, the GPU device was lost: (?!.*async map)./)
    expect(await answer(golden.ids, golden.greedy.length)).toBe(golden.greedy_text)
  } finally {
    await browser.close()
  }
})

for (const backend of ['webgpu', 'cpu'] as const) test(`a page that is frozen and shown again goes on, ${backend}`, async ({ harness }) => {
  const golden = bundledGoldens.prompts.find(({ name }) => name === 'who')!
  await load(harness, { backend })
  await harness.evaluate(([ids, maxTokens]) => {
    const generation = window.model.generate(Uint32Array.from(ids), { maxTokens })
    Object.assign(window, { generation, seen: [] })
    void (async () => { for await (const text of generation) (window as unknown as { seen: string[] }).seen.push(text) })()
  }, [golden.ids, golden.greedy.length] as const)
  await harness.waitForFunction(() => (window as unknown as { seen: string[] }).seen.length > 2)
  const session = await harness.context().newCDPSession(harness)
  await session.send('Page.setWebLifecycleState', { state: 'frozen' })
  await new Promise(resolve => setTimeout(resolve, 3000))
  await session.send('Page.setWebLifecycleState', { state: 'active' })
  const text = await harness.evaluate(() => (window as unknown as { generation: { text(): Promise<string> } }).generation.text())
  expect(text).toBe(golden.greedy_text)
})
