// What the benchmark runs in the page or in the model's worker. Each function is sent there as
// text, so it cannot use what is outside it.

/** Loads the model and leaves it in the page. */
export async function load({ head }) {
  const { BitNet } = await import('/pkg/index.js')
  globalThis.model = await BitNet.load('/model.gguf', { head, cache: 'off' })
}

/** Loads the model, generates one token and disposes of the model. Times are in milliseconds. */
export async function loadTimes(options) {
  const { BitNet } = await import('/pkg/index.js')
  const start = performance.now()
  let lastByte = start
  // The last byte's report may come twice, and the reports of `compile` and `ready` are not about
  // bytes.
  const onProgress = ({ phase, loaded, total }) => {
    if (phase !== 'compile' && phase !== 'ready' && loaded >= total) lastByte = performance.now()
  }
  const model = await BitNet.load('/model.gguf', { ...options, onProgress })
  const ready = performance.now()
  const prompt = Uint32Array.from({ length: 16 }, (_, i) => i * 31 + 1)
  for await (const _ of model.generate(prompt, { maxTokens: 1 }).tokens());
  const token = performance.now()
  await model.dispose()
  return { whole: ready - start, ready: ready - lastByte, token: token - lastByte }
}

/**
 * Times prompts and answers of the loaded model. Prompt lookup is off, because its gain depends on
 * the text. `patience` is in seconds for each figure: it is taken fewer times where its runs would
 * take longer, and left out where a single run would. The page's function `tell` gets what is
 * measured next.
 */
export async function measure({ decode, prefill, tokens, runs, patience, profile }) {
  const { model, tell } = globalThis
  const { contextLength, vocabSize } = model.info
  /** Tokens that an answer gets even where the patience is at an end. */
  const MIN_TOKENS = 4
  const since = start => (performance.now() - start) / 1000
  // Each run's prompt begins with other ids, so that no run reuses what another has prefilled.
  const prompt = (length, run) =>
    Uint32Array.from(
      { length },
      (_, i) => (i * 31 + run * 977 + length * 13 + 1) % Math.min(vocabSize, 4000)
    )
  /** The statistics of an answer, which ends early where the patience does. */
  const stats = async (length, run, maxTokens) => {
    const start = performance.now()
    const generation = model.generate(prompt(length, run), { maxTokens, promptLookup: false })
    let received = 0
    for await (const _ of generation.tokens())
      if (++received >= MIN_TOKENS && since(start) >= patience) break
    return generation.stats
  }
  /** The kernels' times in the third step: the first two warm up. Undefined without timestamps. */
  const kernels = async (context, tokens) => {
    let last
    for (let n = 0; n < 3; n++) {
      last = await model.profile(context, tokens).catch(error => {
        if (error.code !== 'missing-feature') throw error
      })
    }
    return last
  }
  /**
   * The results of `take` in each run. The first warms up; it counts where there is no time for
   * another.
   */
  const several = async take => {
    const start = performance.now()
    const values = [await take(0)]
    while (values.length <= runs && since(start) < patience) values.push(await take(values.length))
    return values.length > 1 ? values.slice(1) : values
  }
  const [figures, leftOut] = [[], []]
  const add = (what, unit, values, more = {}) => figures.push({ what, unit, values, ...more })
  /** Prompt tokens per second, as last measured. */
  let rate = (await stats(16, 0, 1)).prefillTokensPerSecond
  /** Whether there is time for `what`, which prefills that many tokens. */
  const hasTime = async (what, tokens) => {
    const seconds = tokens / rate
    if (seconds <= patience) await tell(what)
    else leftOut.push({ what, seconds })
    return seconds <= patience
  }
  for (const length of prefill.filter(length => length < contextLength)) {
    const what = `time to first token, ${length}-token prompt`
    if (!(await hasTime(what, length))) continue
    const times = await several(async run => (await stats(length, run, 1)).timeToFirstToken)
    add(what, 'ms', times)
    add(
      `prefill, ${length}-token prompt`,
      'tok/s',
      times.map(ms => (length / ms) * 1000)
    )
    rate = (length / times.at(-1)) * 1000
  }
  let bandwidth
  for (const length of decode.filter(length => length + tokens < contextLength)) {
    const what = `decode, ${length} tokens of context`
    if (!(await hasTime(what, length))) continue
    const rates = await several(
      async run => (await stats(length, run, tokens)).decodeTokensPerSecond
    )
    const step = await kernels((length + tokens / 2) | 0, 1)
    bandwidth = step?.bandwidth
    const bytesPerToken = step?.kernels.reduce((sum, { bytes }) => sum + bytes, 0)
    add(what, 'tok/s', rates, step && { bytesPerToken, bandwidth })
  }
  // Two times after an abort in the middle of an answer: until it is answered, and until the first
  // token of another answer, which waits for the steps in flight. A model whose answers end early
  // gives none.
  await tell('abort')
  const [answered, followed] = [[], []]
  const start = performance.now()
  for (let run = 0; run < runs && (run === 0 || since(start) < patience); run++) {
    const abort = new AbortController()
    let [received, stopped] = [0]
    try {
      for await (const _ of model
        .generate(prompt(16, 0), { promptLookup: false, signal: abort.signal })
        .tokens()) {
        if (++received !== 8 + 3 * run) continue
        stopped = performance.now()
        abort.abort()
      }
    } catch (error) {
      if (error !== abort.signal.reason) throw error
      answered.push(performance.now() - stopped)
      await stats(16, 0, 1)
      followed.push(performance.now() - stopped)
    }
  }
  if (answered.length > 0) {
    add('abort to its answer', 'ms', answered)
    add("abort to another answer's first token", 'ms', followed)
  }
  const profiles = []
  const chunk = 512
  const steps = profile
    ? [
        ...decode.map(context => [context, 1]),
        ...prefill.map(length => [Math.max(0, length - chunk), Math.min(length, chunk)])
      ]
    : []
  for (const [context, tokens] of steps.filter(
    ([context, tokens]) => context + tokens <= contextLength
  )) {
    if (!(await hasTime(`profile of ${tokens} tokens after ${context}`, 3 * tokens))) continue
    const step = await kernels(context, tokens)
    if (step) profiles.push({ context, tokens, kernels: step.kernels })
  }
  return { info: model.info, bandwidth, figures, leftOut, profiles }
}

/**
 * Times the same answers with prompt lookup and without, `tokens` each. The prompt counts up and
 * then begins again; a model of `ternlight random --counting` goes on with it. `changed`: one token
 * in so many of the prompt is replaced.
 */
export async function lookups({ tokens, runs }) {
  const { model } = globalThis
  const { contextLength, vocabSize } = model.info
  const START = 16
  const answer = async (text, promptLookup) => {
    const generation = model.generate(text, { maxTokens: tokens, promptLookup })
    const ids = []
    for await (const { id } of generation.tokens()) if (id !== undefined) ids.push(id)
    return { ids, stats: await generation.stats }
  }
  const found = []
  for (const changed of [undefined, 20]) {
    const all = Array.from({ length: tokens + START }, (_, i) =>
      changed && i % changed === changed - 1 ? i + (vocabSize >> 1) : i
    )
    const text = Uint32Array.from([...all, ...all.keys().take(START)], id => id % vocabSize)
    if (text.length + tokens > contextLength) continue
    // The first answer warms up.
    let last = await answer(text, true)
    const expected = await answer(text, false)
    const rates = { plain: [], lookup: [] }
    for (let run = 0; run < runs; run++) {
      rates.plain.push((await answer(text, false)).stats.decodeTokensPerSecond)
      last = await answer(text, true)
      rates.lookup.push(last.stats.decodeTokensPerSecond)
      if (String(last.ids) !== String(expected.ids))
        throw new Error('prompt lookup changed an answer')
    }
    const { draftedTokens, acceptedTokens, draftPasses } = last.stats
    found.push({
      changed,
      promptTokens: text.length,
      tokens: last.ids.length,
      ...rates,
      draftedTokens,
      acceptedTokens,
      draftPasses
    })
  }
  return found
}

/**
 * Generates `tokens` tokens in chats that each go on until the context is full.
 *
 * Rates are of each thousand tokens, and of the first and the last thousand. `lastAtFirst` is the
 * rate at the last thousand's positions when each position was first reached: it tells a slow end
 * from a long context, in which every token takes longer.
 */
export async function soak(tokens) {
  const { model } = globalThis
  const { contextLength, vocabSize } = model.info
  /** Tokens of a turn's prompt. */
  const TURN = 16
  const taken = []
  let [chats, turns] = [0, 0]
  let history = []
  // The second limit is for a model that ends every answer at once.
  while (taken.length < tokens && turns < Math.max(tokens, 16)) {
    if (history.length === 0 || history.length + TURN > contextLength) {
      history = []
      chats++
    }
    for (let i = 0; i < TURN; i++)
      history.push((i * 31 + turns * 977 + TURN * 13 + 1) % Math.min(vocabSize, 4000))
    turns++
    let before = performance.now()
    const options = { maxTokens: tokens - taken.length, promptLookup: false }
    for await (const { id } of model.generate(Uint32Array.from(history), options).tokens()) {
      if (id === undefined) continue
      const now = performance.now()
      taken.push({ position: history.length, ms: now - before })
      before = now
      history.push(id)
    }
  }
  const firstTime = new Map()
  for (const { position, ms } of taken) if (!firstTime.has(position)) firstTime.set(position, ms)
  const size = Math.min(1000, taken.length >> 1)
  const rate = times => (1000 * size) / times.reduce((sum, ms) => sum + ms, 0)
  const last = taken.slice(taken.length - size)
  const rates = []
  for (let at = 0; size > 0 && at + size <= taken.length; at += size) {
    rates.push(rate(taken.slice(at, at + size).map(({ ms }) => ms)))
  }
  return {
    tokens: taken.length,
    chats,
    rates,
    first: rate(taken.slice(0, size).map(({ ms }) => ms)),
    last: rate(last.map(({ ms }) => ms)),
    lastAtFirst: rate(last.map(({ position }) => firstTime.get(position)))
  }
}

/** Runs in the worker. The bytes of the crate's memory. */
export async function wasmBytes() {
  // A second call gives the module that is loaded already.
  const { default: init } = await import('/pkg/ternlight.js')
  return (await init()).memory.buffer.byteLength
}

/** Runs in the worker. Counts the bytes of GPU buffers made from now on, less those destroyed. */
export function watchBuffers() {
  globalThis.gpuBytesMade = 0
  const { createBuffer } = GPUDevice.prototype
  const { destroy } = GPUBuffer.prototype
  const made = new WeakSet()
  GPUDevice.prototype.createBuffer = function (descriptor) {
    const buffer = createBuffer.call(this, descriptor)
    made.add(buffer)
    globalThis.gpuBytesMade += buffer.size
    return buffer
  }
  GPUBuffer.prototype.destroy = function () {
    if (made.delete(this)) globalThis.gpuBytesMade -= this.size
    return destroy.call(this)
  }
}
