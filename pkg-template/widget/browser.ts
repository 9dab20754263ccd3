// The browser's own model, if it has one: the `Summarizer` of Chrome and Edge.
import type { SummarizeOptions } from '../types.js'

/** The options of `model.summarize` that the browser's summaries have too. */
export type Wish = Pick<SummarizeOptions, 'type' | 'length' | 'context'>

interface Asking {
  context?: string
  signal: AbortSignal
}

interface Summarizer {
  inputQuota: number
  measureInputUsage(text: string, options: Asking): Promise<number>
  summarizeStreaming(text: string, options: Asking): ReadableStream<string>
  destroy(): void
}

interface Api {
  availability(core: object): Promise<string>
  create(options: object): Promise<Summarizer>
}

const api = (): Api | undefined => (globalThis as { Summarizer?: Api }).Summarizer

const core = ({ type = 'tldr', length = 'short' }: Wish) => ({ type, length, format: 'plain-text' })

/** Whether the browser can write such summaries: at once, after a download, or not at all. */
export async function browserCan(wish: Wish): Promise<'now' | 'later' | 'never'> {
  const found = await api()?.availability(core(wish)).catch(() => undefined)
  if (found === undefined || found === 'unavailable') return 'never'
  return found === 'available' ? 'now' : 'later'
}

/**
 * The browser's summary as it comes, or `undefined` if the text is too long for it. Rejects with
 * the browser's errors.
 */
export async function browserSummary(
  text: string, wish: Wish, onProgress: (fraction: number) => void, signal: AbortSignal
): Promise<AsyncIterable<string> | undefined> {
  const report = (event: Event) => onProgress((event as ProgressEvent).loaded)
  const monitor = (target: EventTarget) => target.addEventListener('downloadprogress', report)
  const summarizer = await api()!.create({ ...core(wish), monitor, signal })
  const options = wish.context ? { context: wish.context, signal } : { signal }
  try {
    const usage = await summarizer.measureInputUsage(text, options)
    if (usage <= summarizer.inputQuota) return read(summarizer, text, options)
  } catch (error) {
    summarizer.destroy()
    throw error
  }
  summarizer.destroy()
  return undefined
}

async function* read(
  summarizer: Summarizer, text: string, options: Asking
): AsyncGenerator<string, void, undefined> {
  try {
    yield* summarizer.summarizeStreaming(text, options)
  } finally {
    summarizer.destroy()
  }
}
