// What the benchmark runs in the page or in the model's worker: each function by itself, sent there as
// text, so that none can use what is outside it.

/** Loads the model and leaves it in the page. */
export async function load({ head }) {
  const { BitNet } = await import('/pkg/index.js')
  globalThis.model = await BitNet.load('/model.gguf', { head, cache: 'off' })
}

/** Loads the model to its first token, and disposes of it. Times are in milliseconds. */
export async function loadTimes(options) {
  const { BitNet } = await import('/pkg/index.js')
  const start = performance.now()
  let lastByte = start
  // Of the bytes there may be one more report when they are all there; `ready` is not about bytes.
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
 * Times prompts and answers of the model that is loaded, each token by itself: how many at once lookups in
 * the prompt give depends on the text. `patience`: seconds for each figure, which is taken fewer times where
 * they would take longer, and not at all where once would. `tell`, a function of the page's, is told what comes.
 */
export async function measure({ decode, prefill, tokens, runs, patience, profile }) {
  const { model, tell } = globalThis
  const { contextLength, vocabSize } = model.info
  /** Tokens of an answer, however long they take. */
  const LEAST = 4
  const since = start => (performance.now() - start) / 1000
  // Ids that no other run's prompt begins with, so that nothing is reused.
  const prompt = (length, run) =>
    Uint32Array.from({ length }, (_, i) => (i * 31 + run * 977 + length * 13 + 1) % Math.min(vocabSize, 4000))
  /** Of an answer; a short one where there is no time for a long one. */
  const stats = async (length, run, maxTokens) => {
    const start = performance.now()
    const generation = model.generate(prompt(length, run), { maxTokens, promptLookup: false })
    let received = 0
    for await (const _ of generation.tokens()) if (++received >= LEAST && since(start) >= patience) break
    return generation.stats
  }
  /** The third step's times: the first two warm up. Nothing where the GPU has no clock. */
  const kernels = async (context, tokens) => {
    let last
    for (let n = 0; n < 3; n++) {
      last = await model.profile(context, tokens).catch(error => {
        if (error.code !== 'missing-feature') throw error
      })
    }
    return last
  }
  /** What `take` gives in each run. One more than is counted warms up, which counts where there is no time for others. */
  const several = async take => {
    const start = performance.now()
    const values = [await take(0)]
    while (values.length <= runs && since(start) < patience) values.push(await take(values.length))
    return values.length > 1 ? values.slice(1) : values
  }
  const [figures, leftOut] = [[], []]
  const add = (what, unit, values, more = {}) => figures.push({ what, unit, values, ...more })
  /** Tokens of a prompt per second, as last seen. */
  let rate = (await stats(16, 0, 1)).prefillTokensPerSecond
  /** Whether there is time for `what`, for which so many tokens go through the model as a prompt. */
  const bears = async (what, tokens) => {
    const seconds = tokens / rate
    if (seconds <= patience) await tell(what)
    else leftOut.push({ what, seconds })
    return seconds <= patience
  }
  for (const length of prefill.filter(length => length < contextLength)) {
    const what = `time to first token, ${length}-token prompt`
    if (!await bears(what, length)) continue
    const times = await several(async run => (await stats(length, run, 1)).timeToFirstToken)
    add(what, 'ms', times)
    add(`prefill, ${length}-token prompt`, 'tok/s', times.map(ms => length / ms * 1000))
    rate = length / times.at(-1) * 1000
  }
  let bandwidth
  for (const length of decode.filter(length => length + tokens < contextLength)) {
    const what = `decode, ${length} tokens of context`
    if (!await bears(what, length)) continue
    const rates = await several(async run => (await stats(length, run, tokens)).decodeTokensPerSecond)
    const step = await kernels(length + tokens / 2 | 0, 1)
    bandwidth = step?.bandwidth
    const bytesPerToken = step?.kernels.reduce((sum, { bytes }) => sum + bytes, 0)
    add(what, 'tok/s', rates, step && { bytesPerToken, bandwidth })
  }
  // Answers stopped in the middle, until that is answered, and until the first token of another answer,
  // which waits for what was under way. None of a model that ends its answers before.
  await tell('abort')
  const [answered, followed] = [[], []]
  const start = performance.now()
  for (let run = 0; run < runs && (run === 0 || since(start) < patience); run++) {
    const abort = new AbortController()
    let [received, stopped] = [0]
    try {
      for await (const _ of model.generate(prompt(16, 0), { promptLookup: false, signal: abort.signal }).tokens()) {
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
    ? [...decode.map(context => [context, 1]), ...prefill.map(length => [Math.max(0, length - chunk), Math.min(length, chunk)])]
    : []
  for (const [context, tokens] of steps.filter(([context, tokens]) => context + tokens <= contextLength)) {
    if (!await bears(`profile of ${tokens} tokens after ${context}`, 3 * tokens)) continue
    const step = await kernels(context, tokens)
    if (step) profiles.push({ context, tokens, kernels: step.kernels })
  }
  return { info: model.info, bandwidth, figures, leftOut, profiles }
}

/**
 * The same answers of the model that is loaded with prompt lookup and without, `tokens` each, to texts that
 * count up and then begin again, which `ternlight random --counting` makes a model go on with. `changed`:
 * one token in so many of the text is another.
 */
export async function lookups({ tokens, runs }) {
  const { model } = globalThis
  const { contextLength, vocabSize } = model.info
  const LEAD = 16
  const answer = async (text, promptLookup) => {
    const generation = model.generate(text, { maxTokens: tokens, promptLookup })
    const ids = []
    for await (const { id } of generation.tokens()) if (id !== undefined) ids.push(id)
    return { ids, stats: await generation.stats }
  }
  const found = []
  for (const changed of [undefined, 20]) {
    const all = Array.from({ length: tokens + LEAD }, (_, i) => changed && i % changed === changed - 1 ? i + (vocabSize >> 1) : i)
    const text = Uint32Array.from([...all, ...all.keys().take(LEAD)], id => id % vocabSize)
    if (text.length + tokens > contextLength) continue
    // The first warms up.
    let last = await answer(text, true)
    const expected = await answer(text, false)
    const rates = { plain: [], lookup: [] }
    for (let run = 0; run < runs; run++) {
      rates.plain.push((await answer(text, false)).stats.decodeTokensPerSecond)
      last = await answer(text, true)
      rates.lookup.push(last.stats.decodeTokensPerSecond)
      if (String(last.ids) !== String(expected.ids)) throw new Error('prompt lookup changed an answer')
    }
    const { draftedTokens, acceptedTokens, draftPasses } = last.stats
    found.push({ changed, promptTokens: text.length, tokens: last.ids.length, ...rates, draftedTokens, acceptedTokens, draftPasses })
  }
  return found
}

/**
 * Turn after turn of chats that go on until the context is full, `tokens` in all.
 *
 * Rates are of each thousand tokens, and of the first and the last ones; `lastAtFirst` is that of the last
 * ones' positions when each was reached for the first time, because far into a context there is more to
 * read.
 */
export async function soak(tokens) {
  const { model } = globalThis
  const { contextLength, vocabSize } = model.info
  const TURN = 16
  const taken = []
  let [chats, turns] = [0, 0]
  let history = []
  // A model that has nothing to say ends it too.
  while (taken.length < tokens && turns < Math.max(tokens, 16)) {
    if (history.length === 0 || history.length + TURN > contextLength) {
      history = []
      chats++
    }
    for (let i = 0; i < TURN; i++) history.push((i * 31 + turns * 977 + TURN * 13 + 1) % Math.min(vocabSize, 4000))
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
  const stretch = Math.min(1000, taken.length >> 1)
  const rate = times => 1000 * stretch / times.reduce((sum, ms) => sum + ms, 0)
  const last = taken.slice(taken.length - stretch)
  const rates = []
  for (let at = 0; stretch > 0 && at + stretch <= taken.length; at += stretch) {
    rates.push(rate(taken.slice(at, at + stretch).map(({ ms }) => ms)))
  }
  return {
    tokens: taken.length,
    chats,
    rates,
    first: rate(taken.slice(0, stretch).map(({ ms }) => ms)),
    last: rate(last.map(({ ms }) => ms)),
    lastAtFirst: rate(last.map(({ position }) => firstTime.get(position)))
  }
}

/** In the worker: the bytes of the crate's memory. */
export async function wasmBytes() {
  // What is loaded already is given again.
  const { default: init } = await import('/pkg/ternlight.js')
  return (await init()).memory.buffer.byteLength
}

/** In the worker: counts the bytes of GPU buffers made from now on, less those given back. */
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
