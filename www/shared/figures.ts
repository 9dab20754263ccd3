// The line of figures about an answer.
import type { Stats } from 'tritloom'
import { formatCount, formatRate, formatSeconds } from 'tritloom/words'

const ENDINGS: Record<Stats['finishReason'], string> = {
  stop: '',
  length: 'cut off at the limit',
  abort: 'stopped',
  'tool-calls': ''
}

/**
 * A line such as `128 tokens · 41 tokens/s · first after 0.3 s · 220 prompt tokens, 180 of them
 * reused · seed 7`. `stats` is null for an answer that was stopped.
 */
export function describeStats(stats: Stats | null, seed: number | undefined): string {
  if (!stats) return ENDINGS.abort
  const { completionTokens, decodeTokensPerSecond, timeToFirstToken } = stats
  const { promptTokens, reusedTokens, finishReason } = stats
  const reused = reusedTokens > 0 ? `, ${formatCount(reusedTokens)} of them reused` : ''
  return [
    `${formatCount(completionTokens)} ${completionTokens === 1 ? 'token' : 'tokens'}`,
    decodeTokensPerSecond > 0 ? formatRate(decodeTokensPerSecond) : '',
    timeToFirstToken > 0 ? `first after ${formatSeconds(timeToFirstToken)}` : '',
    `${formatCount(promptTokens)} prompt tokens${reused}`,
    seed === undefined ? '' : `seed ${seed}`,
    ENDINGS[finishReason]
  ]
    .filter(figure => figure)
    .join(' · ')
}
