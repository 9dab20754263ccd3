// Tests for each browser but Chromium, where the behaviour itself is tested: of the parts that
// other workers, another storage and another page could break.
import { expect } from '@playwright/test'
import { SLOW, STORY, WHO } from './demos'
import {
  bundledGoldens, continuation, expectedIds, expectRandomModel, failure, goldens, heldHalfway, load, loadFailure, loadReporting, MIB,
  MODEL, scripted, sent, server, SIZE, SPREAD_MODEL, storedModels
} from './harness'
import type { Golden, InPage } from './harness'
import type { BrowserTab } from './tab'

export const expectGoldens = async (tab: InPage, goldens: Golden[]) => {
  expect(goldens).not.toEqual([])
  for (const golden of goldens) {
    expect(await continuation(tab, golden), golden.name).toMatchObject({
      promptTokens: golden.ids.length, ids: expectedIds(golden), text: golden.greedy_text
    })
  }
}

/** One short golden. */
export const WHO_ARE_YOU = goldens.filter(({ name }) => name === 'who')

/** An abort ends a generation of the golden model, and the next one is right. */
export const expectAborts = async (tab: InPage) => {
  const found = await tab.evaluate(async () => {
    const abort = new AbortController()
    const generation = window.model.generate('Once there was', { raw: true, signal: abort.signal })
    const failed = generation.text().catch((error: Error) => error.message)
    for await (const _ of generation.tokens()) {
      abort.abort(new Error('enough'))
      break
    }
    return { failed: await failed, reason: (await generation.stats).finishReason }
  })
  expect(found).toEqual({ failed: 'enough', reason: 'abort' })
  await expectGoldens(tab, WHO_ARE_YOU)
}

/** A download that was aborted goes on where it was, and then works offline. Gives the address of the stored model. */
export const expectResumes = async (tab: InPage) => {
  const { path, url, rewrite, requests } = await scripted(tab, heldHalfway())
  const stopped = await tab.evaluate(async ([path, bytes]) => {
    const { cache } = window.tritloom.BitNet
    const abort = new AbortController()
    const loading = window.load(path, { signal: abort.signal }).catch((error: Error) => error.message)
    const stored = async () => (await cache.list()).find(({ url }) => url.endsWith(path))?.bytes ?? 0
    while (await stored() < bytes) await new Promise(resolve => setTimeout(resolve, 20))
    abort.abort(new Error('enough'))
    return loading
  }, [path, 5 * MIB] as const)
  expect(stopped).toBe('enough')
  expect((await loadFailure(tab, path, { cache: 'only' })).code).toBe('not-cached')

  await rewrite({})
  const { notes } = await loadReporting(tab, path)
  expect(notes).toEqual([{ kind: 'resumed', bytes: expect.any(Number) }])
  expect(sent(await requests())).toBe(SIZE - (notes[0] as { bytes: number }).bytes)
  await expectRandomModel(tab)
  await expectOffline(tab, path)
  const stored = await storedModels(tab)
  expect(stored.find(model => model.url === url)).toMatchObject({ bytes: SIZE, complete: true })
  const verdict = await tab.evaluate(path => window.tritloom.BitNet.cache.verify(path), path)
  expect(verdict).toMatchObject({ bytes: SIZE, damagedBytes: 0 })
  return path
}

/** The random model at an address is stored. */
export const expectOffline = async (tab: InPage, path: string) => {
  await server(tab, 'off')
  try {
    for (const cache of ['use', 'only'] as const) {
      await load(tab, { cache }, path)
      await expectRandomModel(tab)
    }
  } finally {
    await server(tab, 'on')
  }
}

/** Two tabs download once. */
export const expectSharedDownload = async ([tab, other]: [InPage, InPage, ...InPage[]]) => {
  const { path, release, requests } = await scripted(tab, heldHalfway())
  const first = loadReporting(tab, path)
  await expect.poll(async () => (await requests()).length).toBeGreaterThan(5)
  const second = loadReporting(other, path)
  await expect.poll(() => other.evaluate(() => window.progress?.notes.map(({ kind }) => kind), undefined)).toEqual(['waiting'])
  await release()
  expect([(await first).kinds, (await second).kinds]).toEqual([[], ['waiting']])
  expect(sent(await requests())).toBe(SIZE)
  await expectRandomModel(tab)
  await expectRandomModel(other)
}

/** A disposed model refuses, and what it held is free for the next. */
export const expectDisposes = async (tab: InPage) => {
  await load(tab, {}, SPREAD_MODEL)
  const work = `
    const running = model.generate('Once', { raw: true }).text()
    await model.dispose()
    await running`
  expect((await failure(tab, work)).code).toBe('disposed')
  expect((await failure(tab, `await model.tokenize('x')`)).code).toBe('disposed')
  await load(tab, {}, SPREAD_MODEL)
  await expectRandomModel(tab)
}

/** The options of a load of the bundled model for GPUs of which some bytes are used. A few layers count, because buffers are small. */
export const inBytes = (maxBytes?: number) =>
  ({ gpu: { maxBytes, limits: { maxBufferSize: MIB / 4 } }, context: 256, lmHead: 'f16' } as const)

/** More bytes than the buffers have that are kept for readbacks after a load. */
const READBACKS = 64 * 1024

/** The fewest bytes of a GPU with which the bundled model loads. */
export const leastBytes = async (tab: InPage) => {
  const { code, message } = await loadFailure(tab, MODEL, inBytes(1))
  expect(code).toBe('out-of-memory')
  return Number(/ (\d+) bytes needed for /.exec(message)?.[1])
}

/** The bundled model gives the same where its layers do not fit. */
export const expectStreams = async (tab: InPage) => {
  const golden = bundledGoldens.prompts.find(({ name }) => name === 'who')!
  const expected = golden.greedy.slice(0, 8)
  const answers = async (maxBytes?: number) => {
    const { gpuBytes, streamedLayers } = await load(tab, inBytes(maxBytes))
    const found = await tab.evaluate(async ([ids, maxTokens]) => {
      const { model } = window
      const prompt = Uint32Array.from(ids)
      const generate = async (count: number) => {
        const tokens = []
        for await (const { id } of model.generate(prompt, { maxTokens: count }).tokens()) tokens.push(id)
        return tokens
      }
      const tokens = await generate(maxTokens)
      // A stop in the middle of an answer harms no later one.
      for await (const _ of model.generate(prompt, { maxTokens: 64 })) break
      const together = await Promise.all([3, 5].map(generate))
      const { attention } = await model.inspect(prompt, { what: ['attention'], layer: 1 })
      return { tokens, together, logits: [...await model.logits(prompt)], attention: [...attention!.weights] }
    }, [golden.ids, expected.length] as const)
    return { found, gpuBytes, streamedLayers }
  }
  const whole = await answers()
  expect(whole.streamedLayers).toBe(0)
  expect(whole.found.tokens).toEqual(expected)
  let streamed = 0
  for (const maxBytes of [whole.gpuBytes - READBACKS, await leastBytes(tab)]) {
    const { found, gpuBytes, streamedLayers } = await answers(maxBytes)
    expect(found).toEqual(whole.found)
    expect(gpuBytes).toBeLessThan(maxBytes + READBACKS)
    expect(streamedLayers).toBeGreaterThan(streamed)
    streamed = streamedLayers
  }
}

/** Where main memory is too short too, layers come from a file of storage, which may fail at any time and never stays. */
export const expectStoresLayers = async (tab: InPage) => {
  const golden = bundledGoldens.prompts.find(({ name }) => name === 'who')!
  const expected = golden.greedy.slice(0, 8)
  const found = await tab.evaluate(async ([url, options, ids, maxTokens]) => {
    const { BitNet } = window.tritloom
    const short = `${location.origin}/tests/web/short-memory.mjs`
    const script = new Blob([`import '${short}'; import '${location.origin}/pkg/protocol/worker.js'`], { type: 'text/javascript' })
    /** A thread whose files refuse a method at first. */
    const thread = (refused: string) => new Worker(URL.createObjectURL(script), { type: 'module', name: refused })
    const load = (worker: Worker | false, others = {}) => BitNet.load(url, { backend: 'webgpu', ...options, worker, ...others })
    const nameOf = (call: Promise<unknown>) => call.then(() => 'none', ({ code, name }) => typeof code === 'string' ? code : name)
    const files = async () => {
      const names = []
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('tritloom')
      for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) names.push(name)
      return names.filter(name => name.startsWith('scratch-')).length
    }
    const none = async () => {
      while (await files() > 0) {
        await BitNet.cache.list()
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    }
    const worker = thread('')
    const model = await load(worker)
    const answer = async () => {
      const tokens = []
      for await (const { id } of model.generate(Uint32Array.from(ids), { maxTokens }).tokens()) tokens.push(id)
      return tokens
    }
    const { streamedLayers } = model.info
    // Another load deletes no file that is in use.
    await BitNet.cache.list()
    const answers = [await answer()]
    const used = await files()
    const channel = new BroadcastChannel('short-memory')
    const refuse = (name: string) => new Promise(resolve => {
      channel.onmessage = resolve
      channel.postMessage(name)
    })
    await refuse('read')
    const failed = [await nameOf(answer())]
    await refuse('')
    answers.push(await answer())
    await model.dispose()
    worker.terminate()
    await none()
    const leaving = new AbortController()
    const onProgress = ({ fraction }: { fraction: number }) => { if (fraction > 0.5) leaving.abort() }
    for (const [refused, others] of [['truncate', {}], ['write', {}], ['', { signal: leaving.signal, onProgress }]] as const) {
      const worker = thread(refused)
      failed.push(await nameOf(load(worker, others)))
      await none()
      worker.terminate()
    }
    // A page itself has no such files.
    await import(short)
    failed.push(await nameOf(load(false)))
    await none()
    return { answers, streamedLayers, used, failed }
  }, [MODEL, inBytes(await leastBytes(tab)), golden.ids, expected.length] as const)
  expect(found).toEqual({
    answers: [expected, expected], streamedLayers: expect.any(Number), used: 1,
    failed: ['device-lost', 'out-of-memory', 'storage', 'AbortError', 'out-of-memory']
  })
  expect(found.streamedLayers).toBeGreaterThan(0)
}

/** Waits for a text in an element. */
export const expectText = (tab: InPage, selector: string, text: string | RegExp) =>
  expect.poll(() => tab.evaluate(selector => document.querySelector(selector)?.textContent ?? '', selector), SLOW).toMatch(text)

/** The chat demo answers, on the CPU with these instructions. */
export const expectChatDemo = async (tab: BrowserTab, instructions: string) => {
  await tab.open('/dist/chat/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await expectText(tab, '#notices', /The processor computes here, which is slower than a graphics card/)
  await expectText(tab, '#info', `the CPU with ${instructions}`)
  await tab.evaluate(() => {
    document.querySelector<HTMLInputElement>('#greedy')!.click()
    const field = document.querySelector<HTMLTextAreaElement>('#prompt')!
    field.value = 'Who are you?'
    field.dispatchEvent(new Event('input'))
    document.querySelector<HTMLButtonElement>('#send')!.click()
  })
  await expectText(tab, '[role=log] .figures', /tokens\/s/)
  await expectText(tab, '[role=log] .assistant', `Model: ${WHO}`)
  // Another branch, which a reload finds again.
  const press = (name: string) => tab.evaluate(name => {
    const buttons = [...document.querySelectorAll<HTMLButtonElement>('[role=log] .turn:last-of-type .actions button')]
    buttons.find(({ textContent }) => textContent === name)!.click()
  }, name)
  await press('Regenerate')
  await expectText(tab, '[role=log] .turn:last-of-type .actions', /2\/2.*Continue/)
  await tab.open('/dist/chat/index.html')
  await expectText(tab, '#model-name', /tiny-stories/)
  await expectText(tab, '[role=log] .assistant', `Model: ${WHO}`)
  await expectText(tab, '#chat-list', /Who are you/)
}

/** The widget of the TL;DR demo sums up its story, and says so if the CPU computes. */
export const expectWidgetDemo = async (tab: BrowserTab, backend: 'webgpu' | 'cpu') => {
  await tab.open('/dist/tldr/index.html')
  const inWidget = (selector: string) =>
    tab.evaluate(selector => document.querySelector('tldr-widget')!.shadowRoot!.querySelector(selector)!.textContent, selector)
  await tab.evaluate(() => document.querySelector('tldr-widget')!.shadowRoot!.querySelector<HTMLButtonElement>('#summarize')!.click())
  await expect.poll(() => inWidget('#note'), SLOW).toMatch(/tokens\/s/)
  expect(await inWidget('#summary')).toBe(STORY)
  expect((await inWidget('#load-notes'))!.includes('slower than a graphics card')).toBe(backend === 'cpu')
}
