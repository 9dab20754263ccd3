// Decides questions about a text.
import type { Transport } from '../protocol/messages.js'
import type { DecideOptions, Decision, Decisions } from '../types.js'

/** Decides in one step. See `BitNet.decide`. */
export async function* steps(
  transport: Transport, text: string, options: Omit<DecideOptions, 'signal'>, _: unknown, signal?: AbortSignal
): AsyncGenerator<void, Partial<Decision & Decisions>, void> {
  const found = await transport.call('decide', [text, options], signal ? { signal } : {})
  return options.questions ? found : { ...found.decisions[0], stats: found.stats }
}
