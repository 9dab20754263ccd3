// Embeds texts: some at a time, so that the memory of a call has a limit and other calls come in between.
import { badOption, checkCallback, checkCount, report } from '../check.js'
import type { Transport } from '../protocol/messages.js'
import type { EmbedOptions, EmbedProgress } from '../types.js'

/** Texts of one call to the worker, at most. They fill a few passes even if each is one sentence. */
const AT_ONCE = 256

/** Characters of one call, or one text. To encode them takes a fraction of a second, in which nothing else runs. */
const CHARACTERS_AT_ONCE = 2 ** 18

/** Embeds `texts`, some in each step. See `BitNet.embed`. */
export async function* steps(
  transport: Transport, texts: readonly (string | Uint32Array)[], options: Omit<EmbedOptions, 'onProgress' | 'signal'>,
  onProgress: EmbedOptions['onProgress'], signal?: AbortSignal
): AsyncGenerator<void, Float32Array[], void> {
  const { first = 0, ...rest } = options
  checkCount('first', first)
  checkCallback('onProgress', onProgress)
  if (!Array.isArray(texts)) throw badOption('texts', 'must be an array')
  checkTexts(texts, first)
  const vectors: Float32Array[] = []
  const progress: EmbedProgress = { done: 0, total: texts.length, tokens: 0, cut: 0 }
  const tell = (more: Partial<EmbedProgress>) => {
    // An item that is on its way when the signal aborts comes after the promise has rejected.
    if (!signal?.aborted) report(onProgress, Object.assign(progress, more) && { ...progress })
  }
  for (;;) {
    const before = vectors.length
    // A part of a large array would be posted with all of it.
    const some = texts.slice(before, endOfCall(texts, before)).map(text => typeof text === 'string' ? text : text.slice())
    const onItem = (done: number) => { if (done < some.length) tell({ done: before + done }) }
    const numbered = { ...rest, ...(first + before > 0 && { first: first + before }) }
    const { values, tokens, cut } = await transport.call('embed', [some, numbered], signal ? { onItem, signal } : { onItem })
    const width = values.length / some.length
    // Each is an array of its own: one that is kept keeps no others.
    for (const n of some.keys()) vectors.push(values.slice(n * width, (n + 1) * width))
    tell({ done: vectors.length, tokens: progress.tokens + tokens, cut: progress.cut + cut })
    if (vectors.length === texts.length) return vectors
    yield
  }
}

/** Where the call ends that begins with text number `begin`. */
function endOfCall(texts: readonly (string | Uint32Array)[], begin: number): number {
  let end = begin
  for (let characters = 0; end < texts.length && end - begin < AT_ONCE; end++) {
    characters += texts[end]!.length
    if (characters > CHARACTERS_AT_ONCE && end > begin) break
  }
  return end
}

/** Refuses texts that are wrong for every model, before the first is computed. */
function checkTexts(texts: readonly unknown[], first: number): void {
  texts.forEach((text, n) => {
    const isIds = text instanceof Uint32Array
    if (typeof text !== 'string' && !isIds) throw badOption(`texts[${first + n}]`, 'must be a string or a Uint32Array of ids')
    if (isIds && text.length === 0) throw badOption(`texts[${first + n}]`, 'there are no tokens')
  })
}
