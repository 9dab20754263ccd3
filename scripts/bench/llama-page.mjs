// What the comparison with llama.cpp runs in the page, which gets it as text: it can use nothing outside itself.

/** Loads the model with `engine`, `tritloom` or `wllama`, and times it as `rates` does. */
export async function measureInPage({ engine, backend, threads, context, ...how }) {
  const { rates } = await import('/scripts/bench/rates.mjs')
  const userAgent = navigator.userAgent
  if (engine === 'tritloom') {
    const { BitNet } = await import('/pkg/index.js')
    const model = await BitNet.load('/model.gguf', { cache: 'off', backend, threads, context })
    const { info } = model
    const answer = (prompt, maxTokens) => {
      const abort = new AbortController()
      const options = { maxTokens, promptLookup: false, signal: abort.signal }
      const all = model.generate(Uint32Array.from(prompt), options).tokens()
      // The end of a text may come without a token.
      const tokens = (async function* () {
        for await (const { id } of all) if (id !== undefined) yield id
      })()
      return { tokens, stop: () => abort.abort() }
    }
    const found = await rates(answer, { ...how, vocabSize: info.vocabSize })
    return { found, info, threads: info.threads ?? 1, userAgent }
  }
  const { Wllama } = await import('/peer/esm/index.js')
  const quiet = () => {}
  const told = []
  const logger = { debug: quiet, log: quiet, warn: quiet, error: (...texts) => told.push(texts.join(' ')) }
  const wllama = new Wllama({ default: '/peer/esm/wasm/wllama.wasm' }, { logger })
  const blob = await (await fetch('/model.gguf')).blob()
  await wllama.loadModel([blob], {
    n_ctx: context, n_threads: threads, n_gpu_layers: backend === 'cpu' ? 0 : 99, n_parallel: 1
  }).catch(error => {
    throw new Error([error.message, ...told.slice(-3)].join('; '))
  })
  const answer = (prompt, maxTokens) => {
    const abort = new AbortController()
    const tokens = (async function* () {
      yield* await wllama.createCompletion({
        prompt, max_tokens: maxTokens, temperature: 0, stream: true, cache_prompt: false, ignore_eos: true,
        abortSignal: abort.signal
      })
    })()
    return { tokens, stop: () => abort.abort() }
  }
  const { vocabSize = wllama.getLoadedContextInfo().n_vocab } = how
  const found = await rates(answer, { ...how, vocabSize })
  return { found, threads: wllama.getNumThreads(), userAgent }
}
