// The texts of a page, in English: numbers, the progress of a load, notes, errors.
import { BitNetError } from './error.js'
import type { ErrorCode, Progress, ProgressNote } from './types.js'

/** Bytes in decimal units, as browsers and model pages give them: `10.3 MB`, `1.19 GB`. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  let power = 0
  while (bytes >= 1000 && power < units.length - 1) {
    bytes /= 1000
    power += 1
  }
  return `${power === 0 ? bytes : Number(bytes.toPrecision(3))} ${units[power]}`
}

/** A count with the reader's thousands separators. */
export function formatCount(count: number): string {
  return count.toLocaleString()
}

/** Milliseconds as seconds, with one decimal below ten: `0.3 s`, `12 s`. */
export function formatSeconds(milliseconds: number): string {
  const seconds = milliseconds / 1000
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
}

/** The time that is left: `8 s left`, `4 min left`, `1 h 5 min left`. */
export function formatTimeLeft(seconds: number): string {
  if (seconds < 59.5) return `${Math.max(1, Math.round(seconds))} s left`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min left`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`
}

/** A rate of tokens: `41 tokens/s`, `6.2 tokens/s`. */
export function formatRate(tokensPerSecond: number): string {
  const digits = tokensPerSecond < 10 ? 1 : 0
  return `${tokensPerSecond.toFixed(digits)} tokens/s`
}

const STEPS: Record<Progress['phase'], string> = {
  download: 'Downloading',
  cache: 'Reading from cache',
  upload: 'Moving into place',
  compile: 'Preparing the programs',
  ready: 'Ready',
  storing: 'Keeping for the next visit',
  stored: 'Kept for the next visit'
}

/** One line such as `Downloading: 4.2 MB of 10.3 MB, 2.1 MB/s, 3 s left`. */
export function describeProgress(progress: Progress): string {
  const { phase, loaded, total, fromCache, bytesPerSecond, secondsLeft } = progress
  const step = STEPS[phase]
  if (phase === 'compile' || phase === 'ready' || phase === 'stored') return step
  const amount = total > 0 ? `${formatBytes(loaded)} of ${formatBytes(total)}` : formatBytes(loaded)
  const rate = bytesPerSecond > 0 ? `, ${formatBytes(Math.round(bytesPerSecond))}/s` : ''
  const left = secondsLeft ? `, ${formatTimeLeft(secondsLeft)}` : ''
  return `${step}: ${amount}${rate}${left}${fromCache && phase !== 'cache' ? ' (from cache)' : ''}`
}

/** A sentence about something that happened while a model loads. */
export function describeNote(note: ProgressNote): string {
  switch (note.kind) {
    case 'resumed':
      return `${formatBytes(note.bytes)} are here from an earlier download.`
    case 'evicted': {
      const freed = `${fileName(note.url)} (${formatBytes(note.bytes)})`
      return `${freed} was deleted from this browser to make room.`
    }
    case 'not-stored':
      return `The model is not kept, and has to be downloaded again next time: ${note.why}.`
    case 'not-revalidated':
      return `The stored model is used, which may be out of date: ${note.why}.`
    case 'not-resumable':
      return `If the download breaks off, it starts over: ${note.why}.`
    case 'waiting':
      return 'Another tab is downloading this model; this one waits for it.'
    case 'restarted':
      return `The load has started over: ${note.why}.`
    case 'shared':
      return 'This browser had the model already: another site has shared it.'
    case 'offered':
      return 'Other sites can use this copy of the model now.'
    case 'not-shared':
      return `The model is not shared with other sites: ${note.why}.`
    case 'cpu':
      return `The processor computes here, which is slower than a graphics card: ${note.why}.`
  }
}

/** Whether a note matters after the load too: something was deleted, not kept, or is slow. */
export const isLasting = ({ kind }: ProgressNote): boolean =>
  kind === 'evicted' || kind === 'not-stored' || kind === 'cpu'

const fileName = (url: string): string => new URL(url).pathname.split('/').at(-1) || url

/** An error in the form that a page shows. */
export interface Failure {
  code: string
  message: string
  /** Advice for the reader. Empty if the message says everything. */
  advice: string
}

/** Advice for errors, by their codes. */
export type Advice = Partial<Record<ErrorCode, string>>

/**
 * Advice that the package's messages leave out, because they are for developers too and know no
 * buttons.
 */
const ADVICE: Advice = {
  'no-adapter':
    'Update the graphics driver, or allow hardware acceleration in the browser’s settings.',
  'device-lost': 'Load the model again.',
  'out-of-memory': 'A smaller model may fit.',
  'bad-gguf': 'Perhaps its download was cut short.',
  network:
    'Check the address and the connection. ' +
    'The other site also has to allow pages to read its files (CORS).',
  io: 'Check that the file is still there, and choose it again.',
  'storage-full': 'Free some space for this site in the browser.'
}

/**
 * Describes any thrown value. The code of an error of another class is its name. `own` is the
 * page's own advice, which is preferred to the general one.
 */
export function describeFailure(error: unknown, own: Advice = {}): Failure {
  if (error instanceof BitNetError) {
    const { code, message } = error
    return { code, message, advice: own[code] ?? ADVICE[code] ?? '' }
  }
  if (error instanceof Error) return { code: error.name, message: error.message, advice: '' }
  return { code: 'Error', message: String(error), advice: '' }
}
