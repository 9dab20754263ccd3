// Tabs of browsers that Playwright does not drive. A page of the tests asks this process what to do,
// and shows the page under test in a frame.
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test as base, expect } from '@playwright/test'
import { computeWith, ISOLATED } from './harness'
import type { Backend, InPage } from './harness'

interface Answer {
  id: number
  value?: unknown
  failed?: string
  uncaught: string[]
}

/** It asks for questions with GET, and sends answers with POST. */
class Tab {
  /** The uncaught errors of its pages. */
  uncaught: string[] = []
  #waiting: ServerResponse | undefined
  #questions: string[] = []
  #inFlight = new Map<number, (answer: Answer) => void>()
  #lastId = 0
  #url = ''

  /** `site` comes before the paths of its pages. */
  constructor(private baseURL: string, readonly site: string) {}

  async handle(request: IncomingMessage, response: ServerResponse) {
    response.setHeader('access-control-allow-origin', '*')
    if (request.method === 'POST') {
      const answer = JSON.parse(await text(request)) as Answer
      response.end()
      this.uncaught.push(...answer.uncaught)
      this.#inFlight.get(answer.id)?.(answer)
      this.#inFlight.delete(answer.id)
    } else {
      this.#waiting = response
      this.#tell()
    }
  }

  #tell() {
    if (!this.#waiting || this.#questions.length === 0) return
    this.#waiting.end(this.#questions.shift())
    this.#waiting = undefined
  }

  async #ask(question: object) {
    const id = ++this.#lastId
    const answered = new Promise<Answer>(resolve => this.#inFlight.set(id, resolve))
    this.#questions.push(JSON.stringify({ id, ...question }))
    this.#tell()
    const { value, failed } = await answered
    if (failed) throw new Error(failed)
    return value
  }

  /** Opens an address of the tests' server. */
  async open(path: string) {
    this.#url = new URL(this.site + path, this.baseURL).href
    await this.#ask({ url: this.#url })
  }

  url() {
    return this.#url
  }

  evaluate(code: unknown, argument?: unknown) {
    return this.#ask({ code: String(code), argument })
  }
}

/** The harness's functions take a tab as they take a page of Chromium. */
export type BrowserTab = Pick<Tab, 'open'> & InPage

/**
 * The tests of a browser. `start` starts it with its own files in `folder` and a tab for each of `pages`, and gives
 * its processes, the first one first.
 *
 * `tabs` are two tabs of one visitor and one that is isolated from other origins, the same for all tests, because every page compiles the package
 * anew. Their loads compute with `backend`. A test fails if something is thrown uncaught in one of them.
 */
export const testIn = (
  name: string, backend: Backend, start: (folder: string, pages: string[]) => Promise<ChildProcess[]>
) => base.extend<{ uncaught: void }, { both: Tab[], tabs: [BrowserTab, BrowserTab, BrowserTab] }>({
  both: [
    async ({}, use, { project }) => {
      const baseURL = project.use.baseURL!
      const tabs = ['', '', ISOLATED].map(site => new Tab(baseURL, site))
      const server = createServer((request, response) => void tabs[Number(request.url!.slice(1))]?.handle(request, response))
      await new Promise<void>(resolve => server.listen(0, resolve))
      const { port } = server.address() as AddressInfo
      const pages = tabs.map(({ site }, index) => `${baseURL}${site}/tests/web/tab.html?inbox=http://localhost:${port}/${index}`)

      const folder = mkdtempSync(join(tmpdir(), `tritloom-${name.toLowerCase()}-`))
      const processes = await start(folder, pages)
      await use(tabs)
      for (const child of processes.reverse()) {
        const ended = new Promise(resolve => child.once('exit', resolve))
        if (child.kill()) await ended
      }
      server.close()
      server.closeAllConnections()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
    { scope: 'worker' }
  ],
  tabs: [
    async ({ both }, use) => {
      const tabs = both as unknown as [BrowserTab, BrowserTab, BrowserTab]
      for (const tab of tabs) await openHarness(tab, backend)
      await use(tabs)
    },
    { scope: 'worker' }
  ],
  uncaught: [
    async ({ both }, use) => {
      await use()
      for (const { uncaught } of both) expect(uncaught.splice(0), `uncaught errors in ${name}`).toEqual([])
    },
    { auto: true }
  ]
})

/** Opens the page that has the package in it, for the functions of the harness. */
export const openHarness = async (tab: BrowserTab, backend: Backend) => {
  await tab.open('/tests/web/harness.html')
  // A page's load does not wait for what its script awaits.
  await expect.poll(() => tab.evaluate(() => 'tritloom' in window)).toBe(true)
  await computeWith(tab, backend)
}
