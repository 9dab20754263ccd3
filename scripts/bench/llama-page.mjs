// The functions that the comparison with llama.cpp runs in the page, which gets each as text: it can use nothing outside itself.

/**
 * Loads the model with `engine` and times it as `rates` does. `tritloom` makes the prompts, `wllama` takes them as
 * `texts`, by length and run: it takes no token ids.
 */
export async function measureInPage({ engine, backend, threads, context, texts, ...how }) {
  const { rates } = await import('/scripts/bench/rates.mjs')
  const { userAgent } = navigator
  if (engine === 'tritloom') {
    const { BitNet } = await import('/pkg/index.js')
    const { promptTexts } = await import('/scripts/bench/texts.mjs')
    const model = await BitNet.load('/model.gguf', { cache: 'off', backend, threads, context })
    const made = await promptTexts(text => model.tokenize(text), how)
    const answer = ({ ids }, maxTokens) => {
      const abort = new AbortController()
      const all = model.generate(ids, { maxTokens, promptLookup: false, signal: abort.signal }).tokens()
      const tokens = (async function* () {
        let count = 0
        // The rest of a text may come without a token.
        for await (const { id } of all) if (id !== undefined) yield ++count
      })()
      return { tokens, stop: () => abort.abort() }
    }
    const found = await rates(answer, (length, run) => made[length][run], how)
    const { info } = model
    return {
      found, info, threads: info.threads ?? 1, userAgent,
      texts: Object.fromEntries(Object.entries(made).map(([length, runs]) => [length, runs.map(({ text }) => text)]))
    }
  }
  const { Wllama } = await import('/peer/esm/index.js')
  if (!texts) throw new Error('tritloom made no prompts for it')
  const quiet = () => {}
  const told = []
  const logger = { debug: quiet, log: quiet, warn: quiet, error: (...all) => told.push(all.join(' ')) }
  const wllama = new Wllama({ default: '/peer/esm/wasm/wllama.wasm' }, { logger })
  const blob = await (await fetch('/model.gguf')).blob()
  const withLog = error => {
    throw new Error([error.message, told[0]].filter(Boolean).join('; '))
  }
  await wllama.loadModel([blob], {
    n_ctx: context, n_threads: threads, n_gpu_layers: backend === 'cpu' ? 0 : 99, n_parallel: 1
  }).catch(withLog)
  const answer = ({ text, length }, maxTokens) => {
    const abort = new AbortController()
    const options = { max_tokens: maxTokens, temperature: 0, ignore_eos: true, cache_prompt: false, timings_per_token: true }
    const tokens = (async function* () {
      try {
        const chunks = await wllama.createCompletion({ prompt: text, stream: true, abortSignal: abort.signal, ...options })
        for await (const { choices: [choice], timings } of chunks) {
          if (choice?.finish_reason) return
          // The token that begins a text may be added.
          if (Math.abs(timings.prompt_n - length) > 1) throw new Error(`its prompt of ${length} tokens has ${timings.prompt_n}`)
          yield timings.predicted_n
        }
      } catch (error) {
        withLog(error)
      }
    })()
    return { tokens, stop: () => abort.abort() }
  }
  const found = await rates(answer, (length, run) => ({ text: texts[length][run], length }), how)
  return { found, threads: wllama.getNumThreads(), userAgent }
}
