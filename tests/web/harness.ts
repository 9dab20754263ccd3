// What the package's tests share: a page with the package in it, the goldens, small questions.
import { readFileSync } from 'node:fs'
import { test as base, expect } from '@playwright/test'
import type { Browser, BrowserContext, Page } from '@playwright/test'
import type * as ternlight from '../../pkg/index.js'

declare global {
  interface Window {
    ternlight: typeof ternlight
    /** The model that `load` left in the page. */
    model: ternlight.BitNet
    /** What `loadAndTell` was told last. */
    told: ternlight.Progress | undefined
  }
}

export const MODEL = '/models/tiny-stories.gguf'
export const RANDOM_MODEL = '/tests/data/tiny/tiny-bitnet-b1.58.gguf'

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

export const goldens: { prompts: Golden[], tokenizer: { text: string, ids: number[], ids_plain?: number[] }[] } =
  JSON.parse(readFileSync('models/tiny-stories.goldens.json', 'utf8'))

/** A lead below this may be lost to f32 arithmetic: the goldens' own tolerance for two tokens' logits. */
export const SMALL_LEAD = 0.3

/** A page with the package in it. */
export interface Harness {
  page: Page
  /** Closes it, and fails if something was thrown in it that nobody caught. */
  close(): Promise<void>
}

const prepare = async (page: Page): Promise<Harness> => {
  const thrown: string[] = []
  page.on('pageerror', error => thrown.push(String(error)))
  await page.goto('/tests/web/harness.html')
  await page.waitForFunction(() => window.ternlight)
  const close = async () => {
    await page.close()
    expect(thrown, 'uncaught errors in the page').toEqual([])
  }
  return { page, close }
}

/** A page for several tests, or another one of the same visitor. */
export const open = async (browser: Browser, visitor?: BrowserContext) =>
  prepare(await (visitor ? visitor.newPage() : browser.newPage({ baseURL: test.info().project.use.baseURL })))

/** `harness` is a page for one test, with a storage of its own. */
export const test = base.extend<{ harness: Page }>({
  harness: async ({ page }, use) => {
    const { close } = await prepare(page)
    await use(page)
    await close()
  }
})

export { expect }

/** Loads the small model into the page, as `window.model`. */
export const load = (page: Page, options: ternlight.LoadOptions = {}, url = MODEL) =>
  page.evaluate(async ([url, options]) => {
    window.model = await window.ternlight.BitNet.load(url, options)
    return window.model.info
  }, [url, options] as const)

/** How a promise in the page fails: `code` of a BitNetError, else the error's name. */
export const failure = (page: Page, work: string) =>
  page.evaluate(async work => {
    const { BitNetError } = window.ternlight
    try {
      await (0, eval)(`(async () => { const { BitNet } = ternlight; ${work} })()`)
      return { code: 'none', message: 'it succeeded' }
    } catch (error) {
      if (error instanceof BitNetError) return { code: error.code, message: error.message }
      return { code: (error as Error).name, message: String(error) }
    }
  }, work)

/** Requests for models that the server has seen; `off` makes it refuse them. */
export const server = async (page: Page, what: 'count' | 'on' | 'off') =>
  Number(await (await page.request.get(`/control/${what}`)).text())

/** How the server answers one request; tests/web/server.mjs says what each of these means. */
export interface Way {
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
  headers?: Record<string, string>
}

/** A request that the server has seen, and how many bytes it sent. */
export interface Asked {
  range?: string
  ifRange?: string
  status: number
  sent: number
}

let plays = 0

/** A path under which the server answers as told: `then` in turn, `always` with all of them and after. */
export const play = async (page: Page, { always = {}, then = [] }: { always?: Way, then?: Way[] }, path = MODEL) => {
  const name = `${Date.now()}-${plays++}`
  const script = async (data: { always?: Way, then?: Way[] }) => {
    await page.request.post(`/control/play/${name}`, { data })
  }
  await script({ always, then })
  return {
    path: `/play/${name}${path}`,
    url: new URL(`/play/${name}${path}`, page.url()).href,
    /** Another script for the same path; what was asked is forgotten. */
    script,
    /** What the script holds goes on. */
    go: async () => { await page.request.get(`/control/go/${name}`) },
    asked: async (): Promise<Asked[]> => (await page.request.get(`/control/play/${name}`)).json()
  }
}

/** A script for a file whose first five parts come, and the others when the test says `go`. */
export const halfway = (way: Way = {}) => ({ then: Array<Way>(5).fill({ ...way, hold: null }), always: { ...way, hold: 0 } })

/** The greedy answer of `window.model` to a golden prompt is the golden one, token by token. */
export const expectGolden = async (page: Page, name = 'who') => {
  const golden = goldens.prompts.find(golden => golden.name === name)!
  const found = await page.evaluate(async ([turns, maxTokens]) => {
    const messages = turns.map(([role, content]) => ({ role, content }))
    const ids = []
    for await (const { id } of window.model.generate(messages, { maxTokens }).tokens()) ids.push(id)
    return ids.filter(id => id !== undefined)
  }, [golden.turns!, TOKENS] as const)
  expect(found).toEqual(golden.greedy.slice(0, TOKENS))
}

/** Enough to tell a model from a damaged one, and soon there. */
const TOKENS = 12

/** What the page was told while it loaded: the notes, their kinds, and all reports. */
export const loadAndTell = (page: Page, url: string, options: ternlight.LoadOptions = {}) =>
  page.evaluate(async ([url, options]) => {
    const reports: ternlight.Progress[] = []
    window.told = undefined
    const onProgress = (progress: ternlight.Progress) => {
      reports.push(progress)
      window.told = progress
    }
    window.model = await window.ternlight.BitNet.load(url, { ...options, onProgress })
    return { notes: reports.at(-1)!.notes, kinds: reports.at(-1)!.notes.map(({ kind }) => kind), reports }
  }, [url, options] as const)

/** Waits until a `loadAndTell` under way finds that another load has begun with its address. */
export const untilWaiting = (page: Page) => page.waitForFunction(() => window.told?.notes.some(({ kind }) => kind === 'waiting'))

/** What is stored on the device. */
export const stored = (page: Page) => page.evaluate(() => window.ternlight.BitNet.cache.list())
