// Reads what the model computes for a prompt.
import { checkCallback, report } from '../check.js'
import type { Transport } from '../protocol/messages.js'
import type { InspectOptions, Input, Inspection } from '../types.js'

/** Inspects `input` in one step. See `BitNet.inspect`. */
export async function* steps(
  transport: Transport, input: Input, options: Omit<InspectOptions, 'onProgress' | 'signal'>,
  onProgress: InspectOptions['onProgress'], signal?: AbortSignal
): AsyncGenerator<void, Inspection, void> {
  checkCallback('onProgress', onProgress)
  // An item that is on its way when the signal aborts comes after the promise has rejected.
  const onItem = (share: number) => { if (!signal?.aborted) report(onProgress, share) }
  return transport.call('inspect', [input, options], signal ? { onItem, signal } : { onItem })
}
