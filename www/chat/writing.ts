// Writes an answer into its turn while it is generated, and stores it as it grows: after a reload it goes on from
// there. This file knows nothing of the page.
import type { Token } from 'tritloom'
import { describeStats } from '../shared/figures.ts'
import { messagesOf, type Turn } from './conversation.ts'
import type { Library } from './library.ts'
import type { Session } from './session.ts'

export interface Job {
  session: Session
  library: Library
  /** The turns before the answer. */
  before: Turn[]
  /** The answer. If it has a text, it goes on. */
  turn: Turn
  signal: AbortSignal
  onToken: (turn: Turn, token: Token) => void
}

/** Milliseconds after which what has come is stored. */
const SAVED_EVERY = 1000

/** Makes a turn as it is when its answer begins, or goes on. */
export function prepare(turn: Turn) {
  // A character of which only some tokens came is generated again.
  turn.content = turn.content.replace(/\uFFFD+$/, '')
  if (turn.content === '') delete turn.reasoning
  delete turn.figures
  turn.state = 'writing'
}

/** Whether another tab writes an answer now. */
export const BUSY_ELSEWHERE = Symbol()

/**
 * Generates an answer to its end. Throws the errors of the model; what has come before stays in the turn. Gives
 * `BUSY_ELSEWHERE` if another tab is writing this answer.
 */
export async function write(job: Job): Promise<typeof BUSY_ELSEWHERE | void> {
  if (!navigator.locks) return generate(job)
  return navigator.locks.request(`tritloom-answer-${job.turn.id}`, { ifAvailable: true }, lock =>
    lock ? generate(job) : BUSY_ELSEWHERE
  )
}

async function generate({ session, library, before, turn, signal, onToken }: Job): Promise<void> {
  const { options, system } = turn.settings ?? { options: {}, system: '' }
  const goesOn = turn.content !== ''
  let saved = performance.now()
  try {
    const messages = messagesOf(goesOn ? [...before, turn] : before, system)
    const answer = goesOn
      ? session.goOn(turn.conversation, messages, options, signal)
      : session.answer(turn.conversation, messages, options, signal)
    for await (const token of answer.tokens) {
      add(turn, token)
      onToken(turn, token)
      if (performance.now() - saved < SAVED_EVERY) continue
      saved = performance.now()
      void library.saveTurn(turn)
    }
    const stats = await answer.stats
    if (stats?.finishReason === 'tool-calls') turn.toolCalls = await answer.calls()
    if (stats) delete turn.state
    else turn.state = 'stopped'
    turn.figures = describeStats(stats, options.seed)
    const unseen = stats?.droppedMessages ?? 0
    if (unseen > 0) turn.figures += ` · the oldest ${unseen} messages did not fit into the context`
  } catch (error) {
    turn.state = 'failed'
    turn.figures = `broke off: ${error instanceof Error ? error.message : error}`
    throw error
  } finally {
    await library.saveTurn(turn)
  }
}

function add(turn: Turn, { text, channel }: Token) {
  if (channel === 'answer') turn.content += text
  if (channel === 'reasoning') turn.reasoning = (turn.reasoning ?? '') + text
}
