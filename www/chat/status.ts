// The line below the message: tokens a second while an answer comes, how much of the context is used, and the adapter.
import type { Message, ModelInfo } from 'tritloom'
import { formatCount, formatRate } from 'tritloom/words'
import { byId } from '../shared/dom.ts'

/** Milliseconds between two changes of the rate. */
const SHOWN_EVERY = 250

/** Connects the line. `count` counts the tokens of messages. */
export function createStatus(count: (messages: readonly Message[]) => Promise<number>) {
  const line = byId('status', HTMLElement)
  const rate = byId('rate', HTMLElement)
  const context = byId('context', HTMLElement)
  const meter = byId('context-meter', HTMLMeterElement)
  let info: ModelInfo | undefined
  /** Tokens of the conversation without the answer that is being written. */
  let used = 0
  let tokens = 0
  let first = 0
  let shown = 0
  /** How often the conversation has changed. */
  let version = 0

  function showUsed(now: number) {
    if (!info) return
    context.textContent = `${formatCount(now)} of ${formatCount(info.contextLength)} tokens`
    meter.value = Math.min(1, now / info.contextLength)
  }

  return {
    /** There is another model, or none. */
    setModel(now: ModelInfo | undefined) {
      info = now
      rate.textContent = context.textContent = ''
      meter.hidden = !info
      const machine = info?.backend === 'cpu' ? 'On the processor' : 'On the graphics card'
      line.title = info ? `${machine}: ${info.adapter || 'not named by this browser'}` : ''
    },
    /** The conversation is this one now. */
    async setMessages(messages: readonly Message[]) {
      const mine = ++version
      if (!info) return
      try {
        const now = messages.length > 0 ? await count(messages) : 0
        if (mine === version) showUsed((used = now))
      } catch {
        // A template may refuse the conversation. Its answer says so.
      }
    },
    begin() {
      tokens = 0
      rate.textContent = ''
    },
    onToken() {
      const now = performance.now()
      tokens += 1
      if (tokens === 1) first = now
      if (now - shown < SHOWN_EVERY) return
      shown = now
      if (tokens > 1 && now > first) rate.textContent = formatRate((1000 * (tokens - 1)) / (now - first))
      showUsed(used + tokens)
    }
  }
}
