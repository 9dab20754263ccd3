// A browser that nobody debugs, and its memory as Linux counts it. With a debugger, as Playwright is one, a page keeps
// up to 200 MB of what it fetches.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Milliseconds between two looks at the memory. */
const INTERVAL = 20

/** Bytes by which each kind of process has grown. */
export type Growth = Record<string, number>

/**
 * A browser with one page, which asks `?asks=ADDRESS` what to do: it posts what it found, first nothing, and gets the
 * next question.
 */
export class LoneBrowser {
  #folder = mkdtempSync(join(tmpdir(), 'ternlight-'))
  #process: ChildProcess | undefined
  #server: Server
  /** The page, as it waits for the next question. */
  #waiting: ServerResponse | undefined
  #found: (answer: string) => void = () => {}

  static async open(executable: string, args: string[], url: string): Promise<LoneBrowser> {
    const browser = new LoneBrowser()
    const ready = browser.#next()
    await new Promise<void>(resolve => browser.#server.listen(0, 'localhost', resolve))
    const { port } = browser.#server.address() as AddressInfo
    const page = `${url}?asks=${encodeURIComponent(`http://localhost:${port}`)}`
    browser.#process = spawn(executable, ['--headless=new', `--user-data-dir=${browser.#folder}`, ...args, page], { stdio: 'ignore', detached: true })
    await ready
    return browser
  }

  private constructor() {
    this.#server = createServer(async (request, response) => {
      response.setHeader('access-control-allow-origin', '*')
      let text = ''
      for await (const piece of request) text += piece
      this.#waiting = response
      this.#found(text)
    })
  }

  /** The page's answer, and the most that each kind of process grew by meanwhile. */
  async ask<Answer>(question: unknown): Promise<{ answer: Answer, most: Growth }> {
    const next = this.#next()
    const first = this.#memory()
    const most = { ...first }
    const timer = setInterval(() => {
      for (const [kind, bytes] of Object.entries(this.#memory())) most[kind] = Math.max(most[kind] ?? 0, bytes)
    }, INTERVAL)
    try {
      this.#waiting!.end(JSON.stringify(question))
      const { answer, error } = JSON.parse(await next) as { answer: Answer, error?: string }
      if (error !== undefined) throw new Error(error)
      return { answer, most: Object.fromEntries(Object.entries(most).map(([kind, bytes]) => [kind, bytes - (first[kind] ?? 0)])) }
    } finally {
      clearInterval(timer)
    }
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    const ended = new Promise(resolve => this.#process?.once('exit', resolve))
    // With its children, which write into the folder.
    if (this.#process?.pid) process.kill(-this.#process.pid, 'SIGKILL')
    await ended
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }

  /** What the page posts next. */
  #next(): Promise<string> {
    return new Promise(resolve => { this.#found = resolve })
  }

  /** Bytes in memory that are no file's, by kind of process: its own, and what it shares with others. */
  #memory(): Growth {
    const bytes: Growth = {}
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        if (!command.includes(this.#folder)) continue
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
        const kind = /--type=([\w-]+)/.exec(command)?.[1] ?? 'browser'
        bytes[kind] = (bytes[kind] ?? 0) + 1024 * (kilobytes('RssAnon') + kilobytes('RssShmem'))
      } catch {
        // It has ended.
      }
    }
    return bytes
  }
}
