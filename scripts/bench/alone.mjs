// Starts a browser without a debugger, and reads how much memory it takes from Linux.
//
// Playwright attaches a debugger. A page with one keeps up to 200 MB of what it fetches, so its
// memory and its times would be wrong.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Milliseconds between two readings of the memory. */
const INTERVAL = 20

/**
 * Makes the drivers of NVIDIA and of Mesa keep what they have compiled in `folder`. By default the
 * browsers of a machine share it, so that a new one finds kernels compiled.
 */
const driverCache = folder => ({
  __GL_SHADER_DISK_CACHE: '1',
  __GL_SHADER_DISK_CACHE_PATH: folder,
  MESA_SHADER_CACHE_DISABLE: 'false',
  MESA_SHADER_CACHE_DIR: folder
})

/** The flags with which Chromium starts in a folder. `firefoxFlags` of the setup has those of Firefox. */
export const chromiumFlags = args => folder =>
  ['--headless=new', `--user-data-dir=${folder}`, ...args]

/**
 * A browser with a profile on disk, like a visitor's: a private window would store in memory. On
 * Linux the GPU's driver has a cache of its own for each, which is empty at first.
 */
export class LoneBrowser {
  #folder = mkdtempSync(join(tmpdir(), 'tritloom-'))
  #process
  #ended
  #server
  /** The page's last request. Its response will be the next question. */
  #waiting
  #found = () => {}

  /**
   * Opens alone.html at `url`. The page posts the answer to the last question, or nothing at first.
   * The response is the next question.
   * @param {string} executable
   * @param {(folder: string) => string[]} flags
   * @param {string} url
   */
  static async open(executable, flags, url) {
    const browser = new LoneBrowser()
    const ready = browser.#next()
    await new Promise(resolve => browser.#server.listen(0, 'localhost', resolve))
    const asks = encodeURIComponent(`http://localhost:${browser.#server.address().port}`)
    const args = [...flags(browser.#folder), `${url}?asks=${asks}`]
    const compiled = join(browser.#folder, 'driver-cache')
    mkdirSync(compiled)
    const env = { ...process.env, ...driverCache(compiled) }
    browser.#process = spawn(executable, args, { stdio: 'ignore', detached: true, env })
    process.once('exit', browser.#leave)
    browser.#ended = new Promise((_, reject) =>
      browser.#process.once('exit', () => reject(new Error('the browser ended')))
    )
    // `ask` races against this promise; without a handler its rejection would end the process.
    browser.#ended.catch(() => {})
    await Promise.race([ready, browser.#ended])
    await browser.#settled()
    return browser
  }

  constructor() {
    this.#server = createServer(async (request, response) => {
      response.setHeader('access-control-allow-origin', '*')
      let text = ''
      for await (const bytes of request) text += bytes
      this.#waiting = response
      this.#found(text)
    })
  }

  /**
   * Sends `work` to the page as text and runs it there. Resolves to its answer. On Linux, `most`
   * says for each kind of process by how many bytes it grew at most meanwhile; `together` is the
   * sum of all but the GPU process.
   * @template Argument, Answer
   * @param {(argument: Argument) => Promise<Answer>} work
   * @param {Argument} argument
   * @returns {Promise<{ answer: Answer, most: Record<string, number> }>}
   */
  async ask(work, argument) {
    const next = this.#next()
    const first = this.#memory()
    const most = { ...first }
    const timer = setInterval(() => {
      for (const [kind, bytes] of Object.entries(this.#memory()))
        most[kind] = Math.max(most[kind] ?? 0, bytes)
    }, INTERVAL)
    try {
      this.#waiting.end(JSON.stringify({ work: String(work), argument }))
      const { answer, error } = JSON.parse(await Promise.race([next, this.#ended]))
      if (error !== undefined) throw new Error(error)
      for (const kind of Object.keys(most)) most[kind] -= first[kind] ?? 0
      return { answer, most }
    } finally {
      clearInterval(timer)
    }
  }

  async close() {
    process.off('exit', this.#leave)
    this.#server.close()
    this.#server.closeAllConnections()
    this.#kill()
    await this.#ended.catch(() => {})
    this.#remove()
  }

  /** Cleans up if this process ends before it calls `close`. */
  #leave = () => {
    this.#kill()
    this.#remove()
  }

  /** Ends the browser and its children. They would still write into the folder. */
  #kill() {
    try {
      process.kill(-this.#process.pid, 'SIGKILL')
    } catch {
      // They have ended already.
    }
  }

  #remove() {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }

  /**
   * Resolves once the browser itself has started, or after three seconds. In the first half second
   * Chromium's own pages take 27 MiB, which would count as the load's.
   */
  async #settled() {
    let [before, same] = [0, 0]
    for (let n = 0; n < 30 && same < 5; n++) {
      await new Promise(resolve => setTimeout(resolve, 100))
      const { together } = this.#memory()
      same = Math.abs(together - before) < 1 << 20 ? same + 1 : 0
      before = together
    }
  }

  /** Resolves to what the page posts next. */
  #next() {
    return new Promise(resolve => {
      this.#found = resolve
    })
  }

  /**
   * Bytes in memory by kind of process. Mapped files do not count. Memory that several processes
   * share counts for each of them.
   */
  #memory() {
    const bytes = { together: 0 }
    for (const { pid, kind } of descendants(this.#process.pid)) {
      const status = read(`/proc/${pid}/status`)
      const kilobytes = name =>
        Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
      const held = 1024 * (kilobytes('RssAnon') + kilobytes('RssShmem'))
      bytes[kind] = (bytes[kind] ?? 0) + held
      if (kind !== 'gpu-process') bytes.together += held
    }
    return bytes
  }
}

/** A process and its descendants. The command line of each names its kind. */
function descendants(pid) {
  const kind = /--type=([\w-]+)/.exec(read(`/proc/${pid}/cmdline`))?.[1] ?? 'browser'
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean)
  return [{ pid, kind }, ...children.flatMap(descendants)]
}

/** A file of /proc. Empty if the process has ended, or if this is not Linux. */
function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
