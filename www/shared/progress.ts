// What a loading model is doing, in words.
import type { Progress } from 'ternlight'
import { formatBytes } from './format.ts'

const STEPS: Record<Progress['phase'], string> = {
  download: 'Downloading',
  cache: 'Reading from cache',
  upload: 'Moving to the GPU',
  compile: 'Preparing the GPU programs',
  ready: 'Ready'
}

/** One line such as `Downloading: 4.2 MB of 10.3 MB, 2.1 MB/s`. */
export function describeProgress({ phase, loaded, total, fromCache, bytesPerSecond }: Progress): string {
  const step = STEPS[phase]
  if (phase === 'compile' || phase === 'ready') return step
  const amount = total > 0 ? `${formatBytes(loaded)} of ${formatBytes(total)}` : formatBytes(loaded)
  const rate = bytesPerSecond > 0 ? `, ${formatBytes(Math.round(bytesPerSecond))}/s` : ''
  return `${step}: ${amount}${rate}${fromCache && phase !== 'cache' ? ' (from cache)' : ''}`
}
