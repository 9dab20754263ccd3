// The vectors of `model.embed` by a transport's `embed` that a test has made.
const { steps } = await import(new URL('../../pkg/page/embed.js', import.meta.url))

/** Takes all steps, one after the other. */
export const embedded = async (embed, texts, { onProgress, signal, ...options }) => {
  const transport = { call: (_, args, streaming) => embed(args, streaming) }
  const taking = steps(transport, texts, options, onProgress, signal)
  for (;;) {
    const { done, value } = await taking.next()
    if (done) return value
  }
}
