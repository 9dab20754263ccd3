// Firefox for a few tests. Nothing drives it from outside: while WebDriver BiDi does, Firefox 153
// now and then never returns from making a worker inside a worker. So a page of the tests asks
// this process what to do, and shows the page under test in a frame.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test as base, expect } from '@playwright/test'
import { findFirefox, firefoxFlags } from '../../scripts/setup/firefox.mjs'
import { llvmpipe } from '../../scripts/setup/vulkan.mjs'
import { ISOLATED } from './harness'
import type { InPage } from './harness'

export { expect }

/** Its path, or null. */
export const firefoxPath = findFirefox() as string | null

interface Answer {
  id: number
  value?: unknown
  failed?: string
  uncaught: string[]
}

/** One tab. It asks for questions with GET, and sends answers with POST. */
class Tab {
  /** The uncaught errors of its pages. */
  uncaught: string[] = []
  #waiting: ServerResponse | undefined
  #questions: string[] = []
  #inFlight = new Map<number, (answer: Answer) => void>()
  #lastId = 0
  #url = ''

  /** `folder` comes before the paths of its pages. */
  constructor(private baseURL: string, readonly folder: string) {}

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
    this.#url = new URL(this.folder + path, this.baseURL).href
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
export type FirefoxTab = Pick<Tab, 'open'> & InPage

/**
 * `tabs` are two tabs of one visitor, and one that is isolated from other origins, the same for all tests, because every page
 * compiles the kernels anew. A test fails if something is thrown uncaught in one of them.
 */
export const test = base.extend<{ uncaught: void }, { both: Tab[], tabs: [FirefoxTab, FirefoxTab, FirefoxTab] }>({
  both: [
    async ({}, use, { project }) => {
      const baseURL = project.use.baseURL!
      const tabs = ['', '', ISOLATED].map(folder => new Tab(baseURL, folder))
      const server = createServer((request, response) => void tabs[Number(request.url!.slice(1))]?.handle(request, response))
      await new Promise<void>(resolve => server.listen(0, resolve))
      const { port } = server.address() as AddressInfo
      const pages = tabs.map((tab, index) => `${baseURL}${tab.folder}/tests/web/firefox.html?inbox=http://localhost:${port}/${index}`)

      const profile = mkdtempSync(join(tmpdir(), 'tritloom-firefox-'))
      // On Linux the driver of the native tests, unless the environment names another.
      const driver = process.env.VK_DRIVER_FILES || llvmpipe()
      const firefox = spawn(firefoxPath!, [...firefoxFlags(profile), ...pages], {
        env: driver ? { ...process.env, VK_DRIVER_FILES: driver } : process.env, stdio: 'ignore'
      })
      const ended = new Promise(resolve => firefox.once('exit', resolve))
      await use(tabs)
      firefox.kill()
      await ended
      server.close()
      server.closeAllConnections()
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
    { scope: 'worker' }
  ],
  tabs: [
    async ({ both }, use) => {
      for (const tab of both) await tab.open('/tests/web/harness.html')
      await use(both as unknown as [FirefoxTab, FirefoxTab, FirefoxTab])
    },
    { scope: 'worker' }
  ],
  uncaught: [
    async ({ both }, use) => {
      await use()
      for (const { uncaught } of both) expect(uncaught.splice(0), 'uncaught errors in Firefox').toEqual([])
    },
    { auto: true }
  ]
})
