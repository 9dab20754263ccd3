// The line below the message: tokens a second while an answer comes, how much of the context is used, and the adapter.
import type { CountOptions, Message, ModelInfo } from 'tritloom'
import { formatCount, formatRate } from 'tritloom/words'
import { byId } from '../shared/dom.ts'

/** Milliseconds between two changes of the rate. */
const SHOWN_EVERY = 250

/** Connects the line. `count` counts the tokens of messages, with the tools of which the model knows. */
export function createStatus(count: (messages: readonly Message[], options: CountOptions) => Promise<number>) {
  const adapter = byId('adapter', HTMLElement)
  const rate = byId('rate', HTMLElement)
  const context = byId('context', HTMLElement)
  const meter = byId('context-meter', HTMLMeterElement)
  let info: ModelInfo | undefined
  /** Tokens of the conversation without the answer that is being written. */
  let used = 0
  let tokens = 0
  /** When the first token came, and the last. */
  let [first, latest] = [0, 0]
  let shown = 0
  /** How often the conversation has changed. */
  let version = 0

  function showUsed(now: number) {
    if (!info) return
    context.textContent = `${formatCount(now)} of ${formatCount(info.contextLength)} tokens`
    meter.value = Math.min(1, now / info.contextLength)
  }

  function showRate() {
    if (tokens > 1 && latest > first) rate.textContent = formatRate((1000 * (tokens - 1)) / (latest - first))
  }

  return {
    /** There is another model, or none. */
    setModel(now: ModelInfo | undefined) {
      info = now
      rate.textContent = context.textContent = ''
      meter.hidden = !info
      adapter.textContent = adapter.title = info ? info.adapter || 'a graphics card that this browser does not name' : ''
    },
    /** The conversation is this one now. */
    async setMessages(messages: readonly Message[], options: CountOptions) {
      const mine = ++version
      if (!info) return
      try {
        const now = messages.length > 0 ? await count(messages, options) : 0
        if (mine === version) showUsed((used = now))
      } catch {
        // A template may refuse the conversation. Its answer says so.
      }
    },
    /** An answer begins. */
    begin() {
      tokens = 0
      rate.textContent = ''
    },
    onToken() {
      latest = performance.now()
      tokens += 1
      if (tokens === 1) first = latest
      if (latest - shown < SHOWN_EVERY) return
      shown = latest
      showRate()
      showUsed(used + tokens)
    },
    /** The answer has ended. */
    end: showRate
  }
}
