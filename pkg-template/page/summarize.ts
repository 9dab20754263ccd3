// Summaries of texts of any length. A text that does not fit into the context is split into
// passages at the ends of sentences. These are summarised as a batch, and their summaries in a row
// are the next text. All prompts of a summary begin with the same words, so that the model computes
// these once.
import { badOption, checkCallback, checkChoice, checkCount, checkText, report } from '../check.js'
import { BitNetError } from '../error.js'
import type { Generation } from '../generation.js'
import { sentenceEnds, split } from '../passages.js'
import type {
  GenerateOptions, Message, ModelInfo, Stats, SummarizeOptions, Token
} from '../types.js'

/** The part of a model that a summary needs. */
export interface Reader {
  info: Pick<ModelInfo, 'contextLength' | 'thinking' | 'maxBatch'>
  generate(prompt: string, options: GenerateOptions): Generation
  countTokens(messages: readonly Message[]): Promise<number>
}

/** The length of a summary. */
interface Extent {
  /** The units that are counted to find where the model is stopped. */
  unit: 'sentence' | 'line'
  /** The most units. */
  units: number
  /** The length, in the words of the prompt. */
  words: string
  /** The most tokens, unless the caller says otherwise. */
  tokens: number
}

/** The request of a prompt. */
interface Request {
  /** The whole prompt before the text. */
  beginning: string
  extent: Extent
}

const sentences = (units: number, words: string): Extent =>
  ({ unit: 'sentence', units, words, tokens: 64 * units })

const points = (units: number, words: string): Extent =>
  ({ unit: 'line', units, words: `${words} lines that begin with "- "`, tokens: 48 * units })

const headline = (words: number): Extent =>
  ({ unit: 'line', units: 1, words: `at most ${words} words`, tokens: 4 * words })

/** The lengths are those of Chrome's Summarizer. */
const SENTENCES = {
  short: sentences(1, 'one sentence'),
  medium: sentences(3, 'three sentences'),
  long: sentences(5, 'five sentences')
}

const KINDS = {
  tldr: { name: 'TL;DR', ...SENTENCES },
  'key-points': {
    name: 'The key points',
    short: points(3, 'three'),
    medium: points(5, 'five'),
    long: points(7, 'seven')
  },
  headline: { name: 'A headline', short: headline(12), medium: headline(17), long: headline(22) },
  teaser: { name: 'A teaser', ...SENTENCES }
}

const FORMATS = { 'plain-text': '', markdown: ', in Markdown' }

/** The share of the room for text that the summary of a passage may take. */
const SUMMARY_SHARE = 1 / 8
/** The fewest tokens of text that are worth a prompt. */
const MIN_ROOM = 64
/** Tokens that a chat template may add for an answer without reasoning. */
const SLACK = 16

/** Summarises `text`. See `BitNet.summarize`. */
export async function summarize(
  model: Reader, text: string, options: SummarizeOptions, onToken: (token: Token) => void,
  stop: AbortSignal
): Promise<Stats> {
  const { type, length, format, context, onProgress, ...rest } = checked(text, options)
  const { contextLength, thinking, maxBatch } = model.info
  /** Aborts when the caller stops the summary or when one of its prompts fails. */
  const halt = new AbortController()
  stop.addEventListener('abort', () => halt.abort(stop.reason))
  if (stop.aborted) halt.abort(stop.reason)
  const generate = { ...rest, signal: halt.signal }
  const silent = thinking ? { ...generate, thinking: false } : generate
  const whole = request(type, length, format, context)
  const passage = request('tldr', 'long', 'plain-text', context)

  const count = async (prompt: string) => await model.countTokens([user(prompt)]) + SLACK
  const taken = Math.max(await count(whole.beginning), await count(passage.beginning))
  const room = contextLength - taken
  if (room < MIN_ROOM) {
    const said = `\`context\` and the chat template take ${taken} of ${contextLength} tokens`
    throw new BitNetError('context-full', `${said}: too little is left for the text`)
  }
  const maxSummary = Math.floor(room * SUMMARY_SHARE)
  const passageTokens = Math.min(passage.extent.tokens, maxSummary)
  const wholeTokens = Math.min(rest.maxTokens ?? whole.extent.tokens, 2 * maxSummary)

  /** The tokens of a text, as a share of the room beside an answer. */
  const share = async ({ beginning }: Request, text: string, answer: number) =>
    (await count(beginning + text) - taken) / (room - answer)

  const total = new Total()
  const progress = new Steps(onProgress, stop)
  let left = tidy(text)
  while (!stop.aborted && await share(whole, left, wholeTokens) > 1) {
    const passages = await split(left, text => share(passage, text, passageTokens), stop)
    progress.begin(passages.length, false)
    const summaryOf = async (text: string, begin: () => void) => {
      let summary = ''
      const add = ({ text, channel }: Token) => {
        begin()
        if (channel === 'answer') summary += text
      }
      total.add(await answer(model, passage, text, { ...silent, maxTokens: passageTokens }, add))
      progress.next()
      // Each round is shorter than the one before, whatever the model writes.
      return summary.slice(0, text.length >> 1)
    }
    const summaries = await inBatch(passages, maxBatch, halt, summaryOf)
    left = summaries.filter(Boolean).join('\n\n')
  }
  progress.begin(1, true)
  // If the model has nothing to say about any passage, it has nothing to say about the whole.
  if (left !== '' || stop.aborted) {
    const tell = (token: Token) => {
      total.begin()
      onToken(token)
    }
    // Reasoning may take as many tokens as it needs.
    const maxTokens = rest.maxTokens ?? whole.extent.tokens
    const options = rest.thinking ? generate : { ...silent, maxTokens }
    total.add(await answer(model, whole, stop.aborted ? '' : left, options, tell))
  }
  progress.next()
  return total.stats()
}

function checked(text: string, options: SummarizeOptions) {
  checkText('text', text)
  if (text.trim() === '') throw badOption('text', 'must not be empty')
  const {
    type = 'tldr', length = 'short', format = 'plain-text', context = '', onProgress, ...rest
  } = options
  checkChoice('type', type, Object.keys(KINDS))
  checkChoice('length', length, ['short', 'medium', 'long'])
  checkChoice('format', format, Object.keys(FORMATS))
  checkText('context', context)
  checkCallback('onProgress', onProgress)
  if (rest.maxTokens !== undefined) checkCount('maxTokens', rest.maxTokens)
  if (rest.maxTokens === 0) throw badOption('maxTokens', 'must be at least 1')
  for (const name of ['raw', 'special', 'responseFormat']) {
    if (name in rest) throw badOption(name, 'there is no such option')
  }
  return { type, length, format, context, onProgress, ...rest }
}

function request(
  type: keyof typeof KINDS, length: keyof typeof SENTENCES, format: keyof typeof FORMATS,
  context: string
): Request {
  const extent = KINDS[type][length]
  const about = context.trim() && `Context: ${context.trim()}\n\n`
  const wish = `${KINDS[type].name} of this text, ${extent.words}${FORMATS[format]}:`
  return { beginning: `${about}${wish}\n\n`, extent }
}

const user = (content: string): Message => ({ role: 'user', content })

/** A text without the white space that pages have around it and between its words. */
const tidy = (text: string): string =>
  text.trim().replace(/[^\S\n]+/g, ' ').replace(/\s*\n\s*\n\s*/g, '\n\n')

/** Makes the model answer one prompt, and stops it when its answer is as long as was asked for. */
async function answer(
  model: Reader, { beginning, extent }: Request, text: string, options: GenerateOptions,
  onToken: (token: Token) => void
): Promise<Stats> {
  const generation = model.generate(beginning + text, options)
  generation.stats.catch(() => {}) // The loop throws the same error, so it is not lost.
  let said = ''
  let shown = 0
  let isWhole = false
  try {
    for await (const token of generation.tokens()) {
      if (token.channel === 'reasoning') {
        onToken(token)
        continue
      }
      said += token.text
      const limited = limit(said, extent)
      const text = limited.text.slice(shown)
      shown += text.length
      isWhole = limited.isWhole
      if (text || !isWhole) onToken({ ...token, text })
      if (isWhole) break
    }
  } catch (error) {
    if (!options.signal?.aborted) throw error
  }
  const stats = await generation.stats
  return isWhole ? { ...stats, finishReason: 'stop' } : stats
}

/**
 * Cuts an answer to the length that was asked for, without white space around it. The answer is
 * whole if the model has gone on after that.
 */
export function limit(
  answer: string, { unit, units }: Pick<Extent, 'unit' | 'units'>
): { text: string, isWhole: boolean } {
  const ends = unit === 'line' ? lineEnds(answer) : sentenceEnds(answer)
  const end = ends[units - 1] ?? answer.length
  const isWhole = answer.slice(end).trim() !== ''
  return { text: answer.slice(0, end).trim(), isWhole }
}

/** Where lines with content end. A line that ends in a colon only introduces the next ones. */
const lineEnds = (text: string): number[] =>
  [...text.matchAll(/^.*\S.*$/gm)]
    .filter(([line], index, { length }) => index === length - 1 || !line.trim().endsWith(':'))
    .map(({ 0: line, index }) => index + line.length)

/**
 * Runs a job for each input, `size` of them at a time, and gives their results in order. The first
 * job calls `begin` once the KV cache holds the common beginning of all prompts, and the others
 * start. If one fails, it aborts `halt`. Once `halt` is aborted, no more jobs begin.
 */
async function inBatch<I, O>(
  inputs: readonly I[], size: number, halt: AbortController,
  job: (input: I, begin: () => void) => Promise<O>
): Promise<O[]> {
  const results: O[] = []
  const left = inputs.entries()
  /** Takes one input after the other until none is left. */
  const work = async () => {
    try {
      for (const [index, input] of left) {
        if (halt.signal.aborted) break
        results[index] = await job(input, begin)
      }
    } catch (error) {
      halt.abort(error)
      throw error
    }
  }
  let others: Promise<unknown> | undefined
  const begin = () => {
    if (others) return
    others = Promise.all(Array.from({ length: Math.min(size, inputs.length) - 1 }, work))
    others.catch(() => {}) // The others are awaited later, once the first job has ended.
  }
  await work()
  await others
  return results
}

/** Reports the progress of a summary, unless it was stopped. */
class Steps {
  #onProgress: SummarizeOptions['onProgress']
  #stop: AbortSignal
  /** The share of the whole that was done when this round began, from 0 to 1. */
  #before = 0
  /**
   * The progress with one prompt of this round, as a share of the part that was left when the round
   * began.
   */
  #step = 0
  #passages = 0
  #done = 0

  constructor(onProgress: SummarizeOptions['onProgress'], stop: AbortSignal) {
    this.#onProgress = onProgress
    this.#stop = stop
  }

  /** Begins a round. If it is not the last, the rest counts as one more step. */
  begin(passages: number, isLast: boolean): void {
    this.#before = this.#fraction()
    this.#step = 1 / (isLast ? passages : passages + 1)
    this.#passages = passages
    this.#done = 0
    this.#report()
  }

  next(): void {
    this.#done += 1
    this.#report()
  }

  #fraction(): number {
    return this.#before + (1 - this.#before) * this.#done * this.#step
  }

  #report(): void {
    if (this.#stop.aborted) return
    const progress = { done: this.#done, passages: this.#passages, fraction: this.#fraction() }
    report(this.#onProgress, progress)
  }
}

/** Adds up the statistics of several answers. */
class Total {
  #created = performance.now()
  #timeToFirstToken: number | undefined
  #stats: Stats | undefined
  #prefillSeconds = 0
  #decodeSeconds = 0

  /** Records the time at which the summary begins. */
  begin(): void {
    this.#timeToFirstToken ??= performance.now() - this.#created
  }

  add(stats: Stats): void {
    const { promptTokens, reusedTokens, completionTokens } = stats
    this.#prefillSeconds += quotient(promptTokens - reusedTokens, stats.prefillTokensPerSecond)
    this.#decodeSeconds += quotient(completionTokens, stats.decodeTokensPerSecond)
    const before = this.#stats as Record<string, unknown> | undefined
    const summed = Object.entries(stats).map(([name, value]) =>
      [name, typeof value === 'number' ? value + Number(before?.[name] ?? 0) : value])
    const batch = Math.max(stats.batch, this.#stats?.batch ?? 0)
    this.#stats = { ...Object.fromEntries(summed), batch }
  }

  stats(): Stats {
    const stats = this.#stats!
    const { promptTokens, reusedTokens, completionTokens } = stats
    return {
      ...stats,
      timeToFirstToken: this.#timeToFirstToken ?? performance.now() - this.#created,
      prefillTokensPerSecond: quotient(promptTokens - reusedTokens, this.#prefillSeconds),
      decodeTokensPerSecond: quotient(completionTokens, this.#decodeSeconds)
    }
  }
}

const quotient = (amount: number, by: number): number => by > 0 ? amount / by : 0
