// Lets a thread that computes handle its events.
import { platform } from '../platform.js'

const { port1, port2 } = new MessageChannel()
let waiting: (() => void)[] = []

const resumeAll = () => {
  const resumed = waiting
  waiting = []
  for (const resume of resumed) resume()
}

/**
 * Resolves when the thread has handled the events that wait. A message does this sooner than a timer, and browsers
 * do not slow it down in hidden pages.
 */
export const pause = (): Promise<void> =>
  platform.pause?.() ?? new Promise(resolve => {
    // Not before it is needed, because a program that listens does not end.
    port1.onmessage = resumeAll
    waiting.push(resolve)
    port2.postMessage(undefined)
  })
