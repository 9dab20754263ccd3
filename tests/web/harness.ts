// What the package's tests share: a page with the package in it, the goldens, small questions.
import { readFileSync } from 'node:fs'
import { test as base, expect } from '@playwright/test'
import type { Browser, Page } from '@playwright/test'
import type * as ternlight from '../../pkg/index.js'

declare global {
  interface Window {
    ternlight: typeof ternlight
    /** The model that `load` left in the page. */
    model: ternlight.BitNet
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

/** A page for several tests. */
export const open = async (browser: Browser) => prepare(await browser.newPage({ baseURL: test.info().project.use.baseURL }))

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
