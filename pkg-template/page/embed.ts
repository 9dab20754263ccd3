// Embeds texts: some at a time, so that the memory of a call has a limit and other calls come in between.
import { badOption, checkCallback, checkOptions, checkSignal, report } from '../check.js'
import type { Methods, Streaming } from '../protocol/messages.js'
import type { EmbedOptions, EmbedProgress } from '../types.js'

/** Texts of one call to the worker. They fill a few passes even if each is one sentence. */
const AT_ONCE = 256

type Call = (
  args: Methods['embed']['args'], streaming: Streaming<'embed'>
) => Promise<Methods['embed']['result']>

/** Embeds `texts` by calls of `call`. See `BitNet.embed`. */
export async function embed(
  call: Call, texts: readonly (string | Uint32Array)[], options: EmbedOptions
): Promise<Float32Array[]> {
  checkOptions(options)
  const { signal, onProgress, ...rest } = options
  checkSignal(signal)
  checkCallback('onProgress', onProgress)
  if (!Array.isArray(texts)) throw badOption('texts', 'must be an array')
  // Later changes of the caller's array count no more.
  const all = [...texts]
  checkTexts(all)
  const vectors: Float32Array[] = []
  const progress: EmbedProgress = { done: 0, total: all.length, tokens: 0, cut: 0 }
  const tell = (more: Partial<EmbedProgress>) => report(onProgress, Object.assign(progress, more) && { ...progress })
  do {
    const before = vectors.length
    const some = all.slice(before, before + AT_ONCE)
    const onItem = (done: number) => { if (done < some.length) tell({ done: before + done }) }
    const { values, tokens, cut } = await call([some, rest], signal ? { onItem, signal } : { onItem })
    const width = values.length / some.length
    // Each is an array of its own: one that is kept keeps no others.
    for (const n of some.keys()) vectors.push(values.slice(n * width, (n + 1) * width))
    tell({ done: vectors.length, tokens: progress.tokens + tokens, cut: progress.cut + cut })
  } while (vectors.length < all.length)
  return vectors
}

/** A wrong text among many is found before the first is computed. */
function checkTexts(texts: readonly unknown[]): void {
  texts.forEach((text, n) => {
    if (typeof text !== 'string' && !(text instanceof Uint32Array)) {
      throw badOption(`texts[${n}]`, 'must be a string or a Uint32Array of ids')
    }
  })
}
