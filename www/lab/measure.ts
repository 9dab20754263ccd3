// Measures a model. This file knows nothing of the page.
import { BitNetError, type BitNet, type KernelTime, type Profile } from 'tritloom'
import { orAborted } from '../shared/abort.ts'
import { count, expectFields, fields, float, list, number, optional, orNull, text } from './fields.ts'

/** The figures of a measurement, which a report has too. */
export interface Speed {
  /** The model's name. */
  model: string
  /** The machine that computed. */
  machine: string
  points: Point[]
  memory: Memory
  /** The kernels of a token, where the GPU has a clock. */
  profile?: Profile
  /** Why there is no profile, for people. */
  noProfile?: string
}

/** Times with a prompt of some length. */
export interface Point {
  /** Tokens of the prompt. */
  context: number
  /** Tokens a second of the answer after it; null if the model ended it at once. */
  decode: number | null
  /** Milliseconds to the first token. */
  first: number
  /** The most tokens a second that the memory allows; null if its rate is not known. */
  roof: number | null
}

/** Bytes by what they are for, after the load. */
export interface Memory {
  file: number
  held: number
  /** Keys and values that are held. */
  keys: number
  /** Keys and values of a text that fills the context. */
  cache: number
  contextLength: number
  token: number
}

/** Tokens of the answer that is timed. */
const ANSWER = 32
const RUNS = 3
/** A length whose first run takes longer, in milliseconds, is run once, and is the last. */
const LONG = 15_000

const TEXT = 'The dog ran along the river, and a bird sang in the old tree until the sun went down. '

/** The lengths of prompts that are measured, each four times the one before. */
export const lengths = (contextLength: number): number[] =>
  [16, 64, 256, 1024, 4096, 16384].filter(length => length + ANSWER <= contextLength)

/** The greatest number of tokens a second at which `memory` can be read at `bandwidth` GB/s after `context` tokens. */
export function roofOf({ token, cache, contextLength }: Pick<Memory, 'token' | 'cache' | 'contextLength'>, bandwidth: number, context: number): number {
  return bandwidth * 1e9 / (token + cache / contextLength * context)
}

export const median = (values: number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

/** Measures `model`, and calls `onProgress` with the share that is done. Rejects with the reason of `signal`. */
export async function measure(model: BitNet, signal: AbortSignal, onProgress: (share: number) => void): Promise<Speed> {
  const { info } = model
  const memory: Memory = {
    file: info.bytes, held: info.gpuBytes, keys: info.kvBytes, cache: info.cacheBytes,
    contextLength: info.contextLength, token: info.bytesPerToken
  }
  const of = lengths(info.contextLength)
  const steps = of.length * RUNS + 1
  let [done, run] = [0, 0]
  const words = await model.tokenize(TEXT.repeat(Math.ceil((of.at(-1) ?? 0) / 16) + 1))
  /** The times after a prompt of `length` tokens. Each begins elsewhere, so that no run finds its tokens in the KV cache. */
  const timed = async (length: number) => {
    const begin = ++run % (words.length - length)
    const { stats } = model.generate(words.slice(begin, begin + length), { maxTokens: ANSWER, promptLookup: false, signal })
    const { timeToFirstToken, decodeTokensPerSecond } = await stats
    signal.throwIfAborted()
    return { first: timeToFirstToken, decode: decodeTokensPerSecond }
  }
  let profile: Profile | undefined
  let noProfile: string | undefined
  try {
    // First, because it empties the KV cache, also if it rejects: an earlier measurement had the same prompts.
    profile = await orAborted(model.profile(), signal)
  } catch (error) {
    // The GPU has no clock, or no memory left for this. Everything else is an error of the measurement.
    if (!(error instanceof BitNetError) || !['missing-feature', 'out-of-memory'].includes(error.code)) throw error
    noProfile = error.message
  }
  onProgress(++done / steps)
  // The first run of a length may compile kernels, so it is timed only to know how long it takes.
  const points: Point[] = []
  for (const context of of) {
    const start = performance.now()
    const times = [await timed(context)]
    const isLong = performance.now() - start > LONG
    if (!isLong) {
      times.length = 0
      while (times.length < RUNS) {
        times.push(await timed(context))
        onProgress(++done / steps)
      }
    }
    const rates = times.map(({ decode }) => decode).filter(rate => rate > 0)
    points.push({
      context,
      decode: rates.length > 0 ? median(rates) : null,
      first: median(times.map(({ first }) => first)),
      roof: profile ? roofOf(memory, profile.bandwidth, context) : null
    })
    if (isLong) break
  }
  return { model: info.name, machine: info.adapter || info.backend, points, memory, ...(profile && { profile }), ...(noProfile && { noProfile }) }
}

const SPEED = fields<Speed>({
  model: text,
  machine: text,
  points: list(fields<Point>({ context: count, decode: orNull(number), first: number, roof: orNull(number) })),
  memory: fields<Memory>({ file: count, held: count, keys: count, cache: count, contextLength: count, token: count }),
  profile: optional(fields<Profile>({
    bandwidth: number,
    kernels: list(fields<KernelTime>({
      kernel: text, calls: count, microseconds: number, bytes: number, gigabytesPerSecond: float, share: float
    }))
  })),
  noProfile: optional(text)
})

/** The figures of a report. Throws `NoReport` if it has none. */
export const readSpeed = (content: unknown): Speed => expectFields<Speed>(content, SPEED)
