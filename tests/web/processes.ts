// The memory of a browser's processes, as Linux counts it.
import { readFileSync } from 'node:fs'
import type { Browser } from '@playwright/test'

/** Milliseconds between two looks. */
const INTERVAL = 20

/** Bytes that each kind of process holds at once, beyond what it held at first. */
export type Growth = Record<string, number>

/** Looks at the browser's processes until `stop`, which gives the most that each kind has grown by. */
export async function watchMemory(browser: Browser): Promise<{ now(): Growth, stop(): Growth }> {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  const kinds = [...new Set(processInfo.map(({ type }) => type))]
  const look = (): Growth => Object.fromEntries(kinds.map(kind =>
    [kind, processInfo.filter(({ type }) => type === kind).reduce((sum, { id }) => sum + resident(id), 0)]))
  const first = look()
  const since = (found: Growth): Growth => Object.fromEntries(kinds.map(kind => [kind, found[kind]! - first[kind]!]))
  let most = first
  const timer = setInterval(() => {
    const found = look()
    most = Object.fromEntries(kinds.map(kind => [kind, Math.max(found[kind]!, most[kind]!)]))
  }, INTERVAL)
  return {
    now: () => since(look()),
    stop: () => {
      clearInterval(timer)
      return since(most)
    }
  }
}

/** Bytes in memory that are no file's: a process's own, and what it shares with others. */
function resident(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
    return 1024 * (kilobytes('RssAnon') + kilobytes('RssShmem'))
  } catch {
    return 0 // It has ended.
  }
}
