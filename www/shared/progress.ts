// What a loading model is doing, in words.
import type { Progress, ProgressNote } from 'ternlight'
import { formatBytes, formatTimeLeft } from './format.ts'

const STEPS: Record<Progress['phase'], string> = {
  download: 'Downloading',
  cache: 'Reading from cache',
  upload: 'Moving to the GPU',
  compile: 'Preparing the GPU programs',
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
    case 'not-resumable':
      return `If the download breaks off, it starts over: ${note.why}.`
    case 'waiting':
      return 'Another tab is downloading this model; this one waits for it.'
    case 'restarted':
      return `The load has started over: ${note.why}.`
  }
}

/** Notes that matter after the load too: what was deleted, and what was not kept. */
export const isLasting = ({ kind }: ProgressNote): boolean =>
  kind === 'evicted' || kind === 'not-stored'

const fileName = (url: string): string => new URL(url).pathname.split('/').at(-1) || url
