// The parts that the package's tests share: pages with the package in it, models, and a server that
// misbehaves on request.
import { readFileSync } from 'node:fs'
import { test as base, expect } from '@playwright/test'
import type { Browser, BrowserContext, Page } from '@playwright/test'
import type * as tritloom from '../../pkg/index.js'
import { SPREAD_SIZE } from './models.mjs'

declare global {
  interface Window {
    tritloom: typeof tritloom
    /**
     * `BitNet.load` in the page's kept worker, if it has one; the model that was loaded before is
     * let go. Resolves when the model is stored.
     */
    load(source: tritloom.Source, options?: tritloom.LoadOptions): Promise<tritloom.BitNet>
    /** The model that `load` gave last. */
    model: tritloom.BitNet
    /** The last report of the load in progress. */
    progress: tritloom.Progress | undefined
    /**
     * The changes of `makeFast`: the threads of the page that run, and a function that undoes them.
     */
    fast: { threads: number, undo(): void }
    /** The back end of `load`, unless its options name one. */
    backend: NonNullable<tritloom.LoadOptions['backend']>
    /** In a shared page: the worker that keeps its devices. See shared-page.mjs. */
    worker?: Worker
    /** In a shared page: undoes what a test has changed. */
    restore(): Promise<void>
  }
}

/**
 * The part of a page that most functions here need. The tabs of tab.ts have it too, although
 * Playwright does not drive them.
 */
export type InPage = Pick<Page, 'evaluate' | 'url'>

/** The folder of pages that are isolated from other origins. */
export const ISOLATED = '/as/isolated'
/** The bundled model. */
export const MODEL = '/models/tiny-stories.gguf'
/** Three layers of random weights in half a megabyte, quick to load. */
export const RANDOM_MODEL = '/tests/data/tiny/tiny-bitnet-b1.58.gguf'
/** The same in a file of `SIZE` bytes, which is fetched and stored in ten parts of a MiB. */
export const SPREAD_MODEL = '/spread.gguf'
/**
 * Two layers that know a few texts by heart: each token leads all others by far, whatever the
 * adapter.
 */
export const GOLDEN_MODEL = '/tests/data/golden/golden.gguf'
export const SIZE = SPREAD_SIZE
export const MIB = 1 << 20

/** A prompt and the text that the model gives to it, from float64 arithmetic. */
export interface Golden {
  name: string
  kind: 'raw' | 'chat'
  turns: ['system' | 'user' | 'assistant', string][] | null
  text: string
  ids: number[]
  greedy: number[]
  greedy_text: string
  greedy_stopped: boolean
  greedy_margins: number[]
  /** The ten best after the prompt's last token. */
  last: { ids: number[], logits: number[] }
}

interface Goldens {
  prompts: Golden[]
  tokenizer: { text: string, ids: number[], ids_plain?: number[] }[]
}

const readGoldens = (path: string): Goldens => JSON.parse(readFileSync(path, 'utf8'))

/** Of the bundled model. */
export const bundledGoldens = readGoldens('models/tiny-stories.goldens.json')
/** Of the golden model. */
export const goldens = readGoldens('tests/data/golden/golden.json').prompts

/**
 * The golden model's, the conversation of two turns before the one that it begins with: an answer that the model has
 * just given keeps the tokens it was generated with, which are not always those of its text.
 */
export const goldensInOrder = [...goldens].sort((a, b) => (b.turns?.length ?? 0) - (a.turns?.length ?? 0))

/**
 * A lead below this may be lost to f32 arithmetic: the goldens' own tolerance for two tokens'
 * logits.
 */
export const SMALL_LEAD = 0.3

/** The page's greedy continuation of a golden prompt. */
export const continuation = (page: InPage, golden: Golden, promptLookup?: boolean) =>
  page.evaluate(async ({ kind, turns, text, greedy, promptLookup }) => {
    const input = kind === 'raw' ? text : turns!.map(([role, content]) => ({ role, content }))
    const options = { maxTokens: greedy.length, ...(promptLookup === undefined ? {} : { promptLookup }) }
    const generation = window.model.generate(input, kind === 'raw' ? { ...options, raw: true, special: true } : options)
    const tokens = []
    for await (const token of generation.tokens()) tokens.push(token)
    const { promptTokens, finishReason, draftPasses } = await generation.stats
    return {
      promptTokens, finishReason, draftPasses,
      ids: tokens.flatMap(token => token.id ?? []), text: tokens.map(token => token.text).join('')
    }
  }, { ...golden, promptLookup })

/** The golden list ends with the stop token, which a generation does not give. */
export const expectedIds = ({ greedy, greedy_stopped: stopped }: Golden) => stopped ? greedy.slice(0, -1) : greedy

/** A page with the package in it. */
export interface Harness {
  page: Page
  /** Closes it, and fails if an error in it was not caught. */
  close(): Promise<void>
}

const prepare = async (page: Page, backend: Backend, path = ''): Promise<Harness> => {
  const thrown = uncaught(page)
  await page.goto(`${path}/tests/web/harness.html`)
  await page.waitForFunction(() => window.tritloom)
  await computeWith(page, backend)
  const close = async () => {
    await page.close()
    expect(thrown, 'uncaught errors in the page').toEqual([])
  }
  return { page, close }
}

const uncaught = (page: Page) => {
  const thrown: string[] = []
  page.on('pageerror', error => thrown.push(String(error)))
  return thrown
}

/** The back end of the tests. */
export type Backend = Window['backend']

/** Makes the loads of a page compute with the GPU, or the CPU, which is faster than a software GPU. */
export const computeWith = (page: InPage, backend: Backend) => page.evaluate(backend => { window.backend = backend }, backend)

/** A page for several tests, or another one of the same visitor; under a path of the server, if that is given. */
export const open = async (browser: Browser, visitor?: BrowserContext, backend: Backend = 'webgpu', path?: string) =>
  prepare(await (visitor ? visitor.newPage() : browser.newPage({ baseURL: test.info().project.use.baseURL })), backend, path)

/**
 * `harness` is a page for one test, with a storage of its own.
 *
 * `backend` is what their loads compute with: `test.use({ backend: 'cpu' })` for a file whose tests are not about
 * the GPU.
 *
 * `shared` is one page for all tests that use it, with an empty storage at the beginning of each.
 * Its loads keep their GPU devices, so that kernels are compiled once and not in every test: see
 * kept-devices.mjs.
 */
export const test = base.extend<{ backend: Backend, harness: Page, shared: Page }, { sharedPage: { page: Page, thrown: string[] } }>({
  backend: ['webgpu', { option: true }],
  harness: async ({ page, backend }, provide) => {
    const { close } = await prepare(page, backend)
    await provide(page)
    await close()
  },
  sharedPage: [
    async ({ browser }, use, { project }) => {
      const context = await browser.newContext({ baseURL: project.use.baseURL! })
      const page = await context.newPage()
      const thrown = uncaught(page)
      // Before a first route holds, Playwright waits for each worker of the page, of which some here are about to end.
      page.route = () => { throw new Error('a shared page has no routes') }
      await page.goto('/tests/web/harness.html?shared')
      await page.waitForFunction(() => window.tritloom)
      await use({ page, thrown })
      await context.close()
    },
    { scope: 'worker' }
  ],
  shared: async ({ sharedPage: { page, thrown }, backend }, provide) => {
    await page.evaluate(() => window.tritloom.BitNet.cache.clear())
    await computeWith(page, backend)
    await provide(page)
    await page.evaluate(() => window.restore())
    expect(thrown.splice(0), 'uncaught errors in the page').toEqual([])
  }
})

export { expect }

/** The options of a load as Playwright sends them: it would change the type of other sources. */
type Sent = Omit<tritloom.LoadOptions, 'adapters'> & { adapters?: { source: string, scale?: number }[] }

/** Loads a model into the page, as `window.model`. */
export const load = (page: InPage, options: tritloom.LoadOptions = {}, url = MODEL) =>
  page.evaluate(async ([url, options]) => (await window.load(url, options)).info, [url, options as Sent] as const)

/** How work in the page fails: `code` of a BitNetError, else the error's name. */
export const failure = (page: InPage, work: string) =>
  page.evaluate(async work => {
    const { BitNetError } = window.tritloom
    try {
      await (0, eval)(`(async () => { const { BitNet } = tritloom; ${work} })()`)
      return { code: 'none', message: 'it succeeded' }
    } catch (error) {
      if (error instanceof BitNetError) return { code: error.code as string, message: error.message }
      return { code: (error as Error).name, message: String(error) }
    }
  }, work)

/** How loading from an address fails. */
export const loadFailure = (page: InPage, url: string, options: tritloom.LoadOptions = {}) =>
  failure(page, `await load(${JSON.stringify(url)}, ${JSON.stringify(options)})`)

/** Requests for models that the server has seen; `off` makes it refuse them. */
export const server = async (page: InPage, what: 'count' | 'on' | 'off') =>
  Number(await (await fetch(new URL(`/control/${what}`, page.url()))).text())

/** How the server answers one request; server.mjs says what each of these means. */
export interface Reply {
  after?: number
  status?: number
  redirect?: string
  drop?: boolean
  cut?: number
  stall?: number
  hold?: number | null
  pace?: number
  ms?: number
  etag?: string | null
  modified?: string
  ranges?: boolean
  gzip?: boolean
  length?: number | null
  contentRange?: string
  shift?: number
  size?: number
  change?: number
  headers?: Record<string, string>
}

/**
 * The server's answers under one path: `then` one for each request, `always` for all of them and
 * those after, `from` for the requests that begin at an offset.
 */
export interface Script {
  always?: Reply
  then?: Reply[]
  from?: Record<number, Reply>
}

/** A request that the server has seen, and how many bytes it sent. */
export interface Request {
  range?: string
  ifRange?: string
  status: number
  sent: number
}

let scripts = 0

/** A path of its own for a file, under which the server answers as the script says. */
export const scripted = async (page: InPage, first: Script = {}, file = SPREAD_MODEL) => {
  const name = `${Date.now()}-${scripts++}`
  const control = (what: string, init?: RequestInit) => fetch(new URL(`/control/${what}/${name}`, page.url()), init)
  const rewrite = async (script: Script) => { await control('script', { method: 'POST', body: JSON.stringify(script) }) }
  await rewrite(first)
  return {
    path: `/script/${name}${file}`,
    url: new URL(`/script/${name}${file}`, page.url()).href,
    /** Another script for the same path; the requests so far are forgotten. */
    rewrite,
    /** Lets the held responses of the script go on. */
    release: async () => { await control('release') },
    requests: async (): Promise<Request[]> => (await control('script')).json() as Promise<Request[]>
  }
}

/** Bytes that the server has sent. */
export const sent = (requests: Request[]) => requests.reduce((sum, { sent }) => sum + sent, 0)

/** The offset of the first byte that was asked for, and how many were. */
export const asked = ({ range }: Request): [number, number] => {
  const [first, last] = /=(\d+)-(\d+)/.exec(range!)!.slice(1).map(Number) as [number, number]
  return [first, last + 1 - first]
}

/** Makes the connection look fast, with a clock that stands still, on a machine with `processors` processors. */
export const makeFast = (page: InPage, processors: number) => page.evaluate(processors => {
  const { now } = Date
  const { Worker } = window
  Date.now = () => 0
  Object.defineProperty(navigator, 'hardwareConcurrency', { value: processors, configurable: true })
  window.Worker = class extends Worker {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options)
      this.addEventListener('message', () => { window.fast.threads++ }, { once: true })
    }
  }
  const undo = () => {
    Date.now = now
    window.Worker = Worker
    delete (navigator as { hardwareConcurrency?: number }).hardwareConcurrency
  }
  window.fast = { threads: 0, undo }
}, processors)

/**
 * Loads a file of 73 MiB on a fast connection, without storing it. Two threads run before most of it is
 * asked for; `then` says how their first requests are answered. Returns all requests.
 */
export const loadFast = async (page: InPage, then: Reply[] = []) => {
  // While the second part is held, only two more are asked for. The answers of `then` wait for each other: what
  // fails is asked for again at once, and that request should not get the next of them.
  const before: Reply[] = [{}, {}, {}, {}]
  const after = before.length + then.length
  const replies = [...before, ...then.map(reply => ({ ...reply, after }))]
  const from = { [MIB]: { hold: MIB } }
  const { path, requests, release } = await scripted(page, { then: replies, from }, '/wide.gguf')
  await makeFast(page, 4)
  const loading = loadReporting(page, path, { worker: false, cache: 'off', stallTimeout: 8000 })
  await expect.poll(() => page.evaluate(() => window.fast.threads)).toBe(2)
  await release()
  const { notes } = await loading
  await page.evaluate(() => window.fast.undo())
  expect(notes).toEqual([])
  await expectRandomModel(page)
  return requests()
}

/** A script for a file whose first five parts come, and the others when the test releases them. */
export const heldHalfway = (reply: Reply = {}) => ({
  then: Array<Reply>(5).fill({ ...reply, hold: null }), always: { ...reply, hold: 0 }
})

const tiny = {
  tokens: JSON.parse(readFileSync('tests/data/tiny/tokens.json', 'utf8')) as { tokens: number[], n_vocab: number },
  logits: readFileSync('tests/data/tiny/tiny-bitnet-b1.58.numpy.f32')
}

/** The logits after so many tokens of tests/data/tiny, as NumPy computed them. */
const tinyLogits = (tokens: number) => {
  const { n_vocab: width } = tiny.tokens
  return Array.from({ length: width }, (_, id) => tiny.logits.readFloatLE(4 * ((tokens - 1) * width + id)))
}

/** An activation that rounds the other way to int8 moves a logit of the random model by 0.2. */
export const CLOSE = 1

export const best = (logits: number[]) => logits.indexOf(Math.max(...logits))

/**
 * The logits that the random model gave first in this run, by what computed them: the same bytes give the
 * same, to the last bit.
 */
const firstLogits: Partial<Record<tritloom.ModelInfo['backend'], number[]>> = {}

/**
 * `window.model` is the random model, every byte of it: its logits are NumPy's, and those of any
 * load before.
 */
export const expectRandomModel = async (page: InPage) => {
  const ids = tiny.tokens.tokens
  const { found, backend } = await page.evaluate(async ids => {
    const { model } = window
    return { found: [...await model.logits(Uint32Array.from(ids))], backend: model.info.backend }
  }, ids)
  const expected = tinyLogits(ids.length)
  expect(best(found)).toBe(best(expected))
  expect(Math.max(...found.map((logit, id) => Math.abs(logit - expected[id]!)))).toBeLessThan(CLOSE)
  firstLogits[backend] ??= found
  expect(found).toEqual(firstLogits[backend])
}

/** Loads and keeps the reports: the notes, their kinds, and all reports. */
export const loadReporting = (page: InPage, url: string, options: tritloom.LoadOptions = {}) =>
  page.evaluate(async ([url, options]) => {
    const reports: tritloom.Progress[] = []
    window.progress = undefined
    const onProgress = (progress: tritloom.Progress) => {
      reports.push(progress)
      window.progress = progress
    }
    await window.load(url, { ...options, onProgress })
    return { notes: reports.at(-1)!.notes, kinds: reports.at(-1)!.notes.map(({ kind }) => kind), reports }
  }, [url, options as Sent] as const)

/** Waits until a `loadReporting` finds that another tab loads from its address. */
export const untilWaiting = (page: Page) =>
  page.waitForFunction(() => window.progress?.notes.some(({ kind }) => kind === 'waiting'))

export const expectNeverBack = (reports: tritloom.Progress[]) => {
  const fractions = reports.map(({ fraction }) => fraction)
  expect(fractions).toEqual([...fractions].sort((a, b) => a - b))
}

/** The models that are stored on the device. */
export const storedModels = (page: InPage) => page.evaluate(() => window.tritloom.BitNet.cache.list())
