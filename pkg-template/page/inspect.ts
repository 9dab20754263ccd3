// Reads what the model computes for a prompt.
import { checkCallback, checkOptions, checkSignal, report } from '../check.js'
import type { Methods, Streaming } from '../protocol/messages.js'
import type { InspectOptions, Input, Inspection } from '../types.js'

type Call = (
  args: Methods['inspect']['args'], streaming: Streaming<'inspect'>
) => Promise<Inspection>

/** Inspects `input` by a call of `call`. See `BitNet.inspect`. */
export async function inspect(call: Call, input: Input, options: InspectOptions): Promise<Inspection> {
  checkOptions(options)
  const { signal, onProgress, ...rest } = options
  checkSignal(signal)
  checkCallback('onProgress', onProgress)
  // An item that is on its way when the signal aborts comes after the promise has rejected.
  const onItem = (share: number) => { if (!signal?.aborted) report(onProgress, share) }
  return call([input, rest], signal ? { onItem, signal } : { onItem })
}
