// The functions that the benchmark runs in the page or in the model's worker. Each is sent there as
// text, so it can use nothing outside itself.

/** Loads the model and leaves it in the page. */
export async function load(options) {
  const { BitNet } = await import('/pkg/index.js')
  globalThis.model = await BitNet.load('/model.gguf', { ...options, cache: 'off' })
}

/**
 * Loads the model, generates one token and disposes of the model once it is stored and all kernels
 * are compiled. Times are in milliseconds. `compiled` is the time of the kernels that the load waits
 * for: from the first that is asked for until the last is there. `rest` is from when the model can be
 * used until all others are compiled.
 */
export async function loadTimes(options) {
  const { BitNet } = await import('/pkg/index.js')
  const channel = new BroadcastChannel('compiled')
  /** Reports on kernels: the time, the time since the first was asked for, and how many are being compiled. */
  const told = []
  channel.onmessage = ({ data }) => told.push(data)
  /** In the worker, before the package is asked for anything. */
  const watch = () => {
    const channel = new BroadcastChannel('compiled')
    let [first, open, atOnce] = [undefined, 0, 0]
    const tell = more => {
      const now = performance.now()
      first ??= now
      open += more
      channel.postMessage({ at: performance.timeOrigin + now, since: now - first, open })
    }
    const { createComputePipeline, createComputePipelineAsync } = GPUDevice.prototype
    const { submit } = GPUQueue.prototype
    GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
      tell(1)
      const pipeline = createComputePipelineAsync.call(this, descriptor)
      const done = () => tell(-1)
      void pipeline.then(done, done)
      return pipeline
    }
    GPUDevice.prototype.createComputePipeline = function (descriptor) {
      tell(1)
      atOnce++
      return createComputePipeline.call(this, descriptor)
    }
    // The GPU does the work that is submitted next only when they are compiled.
    GPUQueue.prototype.submit = function (commands) {
      submit.call(this, commands)
      if (atOnce === 0) return
      const compiled = atOnce
      atOnce = 0
      void this.onSubmittedWorkDone().then(() => tell(-compiled))
    }
  }
  const script = `import '${location.origin}/pkg/protocol/worker.js'; (${watch})()`
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))
  const worker = new Worker(url, { type: 'module' })
  const start = performance.now()
  let lastByte = start
  // The other phases count no bytes that come. The last may be reported twice: take the later.
  const onProgress = ({ phase, loaded, total }) => {
    if (['download', 'cache'].includes(phase) && loaded >= total) lastByte = performance.now()
  }
  const model = await BitNet.load('/model.gguf', { ...options, worker, onProgress })
  const ready = performance.now()
  const readyAt = performance.timeOrigin + ready
  const prompt = Uint32Array.from({ length: 16 }, (_, i) => i * 31 + 1)
  for await (const _ of model.generate(prompt, { maxTokens: 1 }).tokens());
  const token = performance.now()
  await model.stored
  const stored = performance.now()
  // Each kernel is asked for right after the one before it, so a pause means that all are there. The first is asked for
  // when the answer has ended: on a CPU, a second after its token.
  const [QUIET, STEP] = [1500, 100]
  const storedAt = performance.timeOrigin + stored
  const isQuiet = ({ at, open }) =>
    open === 0 && performance.timeOrigin + performance.now() - Math.max(at, storedAt) > QUIET
  // The CPU compiles nothing.
  if (options.backend === 'cpu') told.push({ at: readyAt, since: 0, open: 0 })
  else while (!isQuiet(told.at(-1))) await new Promise(resolve => setTimeout(resolve, STEP))
  await model.dispose()
  worker.terminate()
  channel.close()
  return {
    compiled: told.findLast(({ at }) => at <= readyAt).since,
    rest: Math.max(0, told.at(-1).at - readyAt),
    whole: ready - start,
    ready: ready - lastByte,
    token: token - lastByte,
    stored: stored - start
  }
}

/**
 * Times prompts and answers of the loaded model. Prompt lookup is off, because its gain depends on
 * the text. Each figure may take `patience` seconds: where its runs take longer, there are fewer of
 * them, and where a single run would, the figure is left out. The page's function `tell` is called
 * with the name of each figure before it is taken.
 */
export async function measure({
  decode, prefill, tokens, runs, patience, profile, sampling, options, batch, format, decide, adapterRank
}) {
  const { model, tell } = globalThis
  const { contextLength, vocabSize } = model.info
  /** Tokens that each answer gets, however long they take. */
  const MIN_TOKENS = 4
  const since = start => (performance.now() - start) / 1000
  /**
   * Ways to ask for answers of `tokens` tokens, by name. A model with random weights chooses all tokens of
   * words and letters, and four of ten of the records; the format puts in the others. Of all it might
   * choose, words forbid next to nothing, letters nearly everything.
   */
  const FORMATS = tokens => {
    // Models with random weights have numbered words, and a token for each letter.
    const record = {
      type: 'object',
      properties: { name: { type: 'string', pattern: '^[a-z]{8}$' } },
      required: ['name'],
      additionalProperties: false
    }
    const n = Math.ceil(tokens / 20)
    const list = { type: 'array', items: record, minItems: n, maxItems: n }
    const records = { responseFormat: { type: 'json_schema', schema: list } }
    return {
      'no format': {},
      words: { responseFormat: { type: 'regex', pattern: '( [0-9]{1,6})+' } },
      letters: { responseFormat: { type: 'regex', pattern: `[a-z]{${tokens}}` } },
      records,
      'records with prompt lookup': { ...records, promptLookup: true }
    }
  }
  // Each run's prompt begins with other ids, so that no run finds its prompt in the KV cache.
  const prompt = (length, run) =>
    Uint32Array.from(
      { length },
      (_, i) => (i * 31 + run * 977 + length * 13 + 1) % Math.min(vocabSize, 4000)
    )
  /** The statistics of an answer. It ends early when the patience does. */
  const stats = async (length, run, maxTokens, more = {}) => {
    const start = performance.now()
    const options = { maxTokens, promptLookup: false, ...more }
    const generation = model.generate(prompt(length, run), options)
    let received = 0
    for await (const _ of generation.tokens())
      if (++received >= MIN_TOKENS && since(start) >= patience) break
    return generation.stats
  }
  /** The kernels' times in the third step: the first two warm up. Undefined without timestamps. */
  const kernels = async (context, tokens, way) => {
    let last
    for (let n = 0; n < 3; n++) {
      last = await model.profile(context, tokens, way).catch(error => {
        if (error.code !== 'missing-feature') throw error
      })
    }
    return last
  }
  /** The results of all runs but the first, which warms up. If there is time for one only: its. */
  const several = async take => {
    const start = performance.now()
    const values = [await take(0)]
    while (values.length <= runs && since(start) < patience) values.push(await take(values.length))
    return values.length > 1 ? values.slice(1) : values
  }
  const [figures, leftOut] = [[], []]
  const add = (what, unit, values, more = {}) => figures.push({ what, unit, values, ...more })
  /** Seconds of work after which a card that was idle has its full clock. */
  const AWAKE = 1
  /** Seconds without a call, in which the kernels are compiled that the load did not wait for. */
  const QUIET = 3
  /** Prompt tokens per second, as last measured. */
  let rate
  /** Times of short prompts in a row, until the card is awake. */
  const awaken = async ids => {
    const [times, start] = [[], performance.now()]
    while (times.length === 0 || since(start) < Math.min(AWAKE, patience)) {
      // Not the prompts of the figures to come.
      const { timeToFirstToken, prefillTokensPerSecond } = await stats(16, ids + times.length, 1)
      times.push(timeToFirstToken)
      rate = prefillTokensPerSecond
    }
    return times
  }
  const early = await awaken(10_000)
  await new Promise(resolve => setTimeout(resolve, 1000 * Math.min(QUIET, patience)))
  await awaken(20_000)
  add('time to first token, 16-token prompt, right after the load', 'ms', early.slice(0, runs))
  /** Whether there is time to prefill `tokens` for `what`. */
  const hasTime = async (what, tokens) => {
    const seconds = tokens / rate
    if (seconds <= patience) await tell(what)
    else leftOut.push({ what, seconds })
    return seconds <= patience
  }
  const temperature = { temperature: 0.7, seed: 7 }
  const best = { ...temperature, topK: 40, topP: 0.95 }
  /** How `--sampling` draws tokens. */
  const drawn = {
    temperature,
    'top-k and top-p': best,
    'top-p': { ...temperature, topP: 0.95 },
    'min-p': { ...temperature, minP: 0.05 }
  }
  /** The options that `--options` asks for. */
  const given = {
    ...options,
    'top-k, top-p and penalties': { ...best, ...options?.penalties },
    'top-k, top-p and logitBias': { ...best, ...options?.logitBias },
    'top-k, top-p and logprobs': { ...best, ...options?.logprobs },
    'top-k, top-p and all three': {
      ...best, ...options?.penalties, ...options?.logitBias, ...options?.logprobs
    }
  }
  const ways = Object.entries({ ...(sampling && drawn), ...(options && given) })
  let bandwidth
  /** Times prompts and decoding. The names of their figures end with `more`. */
  const speeds = async more => {
    for (const length of prefill.filter(length => length < contextLength)) {
      const what = `time to first token, ${length}-token prompt${more}`
      if (!(await hasTime(what, length))) continue
      const times = await several(async run => (await stats(length, run, 1)).timeToFirstToken)
      add(what, 'ms', times)
      add(
        `prefill, ${length}-token prompt${more}`,
        'tok/s',
        times.map(ms => (length / ms) * 1000)
      )
      rate = (length / times.at(-1)) * 1000
    }
    for (const length of decode.filter(length => length + tokens < contextLength)) {
      const what = `decode, ${length} tokens of context${more}`
      if (!(await hasTime(what, length))) continue
      const rates = await several(
        async run => (await stats(length, run, tokens)).decodeTokensPerSecond
      )
      const step = await kernels((length + tokens / 2) | 0, 1)
      bandwidth = step?.bandwidth
      const bytesPerToken = step?.kernels.reduce((sum, { bytes }) => sum + bytes, 0)
      add(what, 'tok/s', rates, step && { bytesPerToken, bandwidth })
      for (const [how, way] of ways) {
        await tell(`${what}, ${how}`)
        const rates = await several(
          async run => (await stats(length, run, tokens, way)).decodeTokensPerSecond
        )
        add(`${what}, ${how}`, 'tok/s', rates)
      }
    }
  }
  await speeds('')
  if (adapterRank > 0) {
    const adapter = await model.loadAdapter('/adapter.gguf')
    await model.setAdapters([{ adapter, scale: 1 }])
    await speeds(`, adapter of rank ${adapterRank}`)
    await model.setAdapters([])
  }
  if (batch) {
    const what = `${model.info.maxBatch} answers at once, their tokens together`
    await tell(what)
    const rates = await several(async run => {
      const start = performance.now()
      const inputs = Array.from({ length: model.info.maxBatch }, (_, n) => prompt(16, run * 16 + n))
      const answers = model.generateMany(inputs, { maxTokens: tokens, promptLookup: false })
      const all = await Promise.all(answers.map(({ stats }) => stats))
      return all.reduce((sum, { completionTokens }) => sum + completionTokens, 0) / since(start)
    })
    add(what, 'tok/s', rates)
  }
  if (format) {
    // Each in turn, so that all of them meet the same card.
    for (const at of [1, model.info.maxBatch]) {
      const all = {}
      for (let run = 0; run <= runs; run++) {
        await tell(`answers in a format, ${at} at once, run ${run} of ${runs}`)
        for (const [n, [name, way]] of Object.entries(FORMATS(tokens)).entries()) {
          const inputs = Array.from({ length: at }, (_, i) =>
            prompt(16, 100 + 128 * run + 16 * n + i)
          )
          const start = performance.now()
          const options = { maxTokens: tokens, promptLookup: false, ...way }
          const answers = model.generateMany(inputs, options)
          const stats = await Promise.all(answers.map(({ stats }) => stats))
          const seconds = since(start)
          const sum = name => stats.reduce((sum, stats) => sum + stats[name], 0)
          const [made, forced] = [sum('completionTokens'), sum('forcedTokens')]
          const found = {
            rate: made / seconds,
            chosen: (made - forced) / seconds,
            share: forced / made,
            decode: stats[0].decodeTokensPerSecond
          }
          // The first run warms up. The first answer in a format fetches the module and reads the vocabulary.
          if (run > 0) (all[name] ??= []).push(found)
          else if (at === 1 && name === 'words') {
            add(`first answer in a format, ${made} tokens, with its module and vocabulary`, 's', [seconds])
          }
        }
      }
      for (const [name, found] of Object.entries(all)) {
        const isForced = found[0].share > 0
        const share = isForced ? `, ${(100 * found[0].share).toFixed(0)} % forced` : ''
        const addFound = (what, value) =>
          add(`${at} at once, ${name}${share}, ${what}`, 'tok/s', found.map(one => one[value]))
        addFound('whole answers', 'rate')
        if (isForced) addFound('its chosen tokens', 'chosen')
        // Records begin with tokens that are put in, before the first one that is timed.
        else if (at === 1) addFound('decode', 'decode')
      }
    }
  }
  if (decide > 0) {
    const text = 'Wool dyed red was sold dear. '.repeat(40).slice(0, 1000)
    const questions = Array.from({ length: decide }, (_, n) => ({
      question: `Is it about wool number ${n}?`, type: 'boolean'
    }))
    await tell(`${decide} decisions`)
    const seconds = async (what, ask) => {
      const start = performance.now()
      const tokens = await ask()
      add(`${decide} questions about a text of 1000 bytes, ${tokens} tokens in all: ${what}`, 's', [
        since(start)
      ])
    }
    await model.decide(text, { questions: [{ question: 'Is it about silk?', type: 'boolean' }] })
    await seconds('decide', async () => (await model.decide(text, { questions })).stats.promptTokens)
    await tell(`${decide} answers to the same questions`)
    await seconds('generate, three tokens each', async () => {
      let computed = 0
      for (const { question } of questions) {
        const options = 'Answer with one of these options and nothing else:\n- yes\n- no'
        const message = `Text:\n${text}\n\nQuestion: ${question}\n${options}`
        const stats = await model.generate(message, { maxTokens: 3 }).stats
        computed += stats.promptTokens - stats.reusedTokens
      }
      return computed
    })
  }
  // After an abort in the middle of an answer: the time until the answer rejects, and the time
  // until the first token of another answer, which has to wait for the steps in flight. If the
  // model ends its answers before that, there are no times.
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
  const greedyAndDrawn = context => [
    { context, tokens: 1 },
    ...Object.keys(sampling ? drawn : {}).map(how => ({ context, tokens: 1, drawn: how }))
  ]
  const lastChunk = length => ({
    context: Math.max(0, length - chunk), tokens: Math.min(length, chunk)
  })
  const steps = profile ? [...decode.flatMap(greedyAndDrawn), ...prefill.map(lastChunk)] : []
  for (const step of steps.filter(({ context, tokens }) => context + tokens <= contextLength)) {
    const how = step.drawn ? `, ${step.drawn}` : ''
    const what = `profile of ${step.tokens} tokens after ${step.context}${how}`
    if (!(await hasTime(what, 3 * step.tokens))) continue
    const found = await kernels(step.context, step.tokens, drawn[step.drawn])
    if (found) profiles.push({ ...step, kernels: found.kernels })
  }
  return { info: model.info, bandwidth, figures, leftOut, profiles }
}

/**
 * Times the vectors of texts: as many tokens each time, in short texts and in long ones. For a model that answers, also
 * a prompt of as many tokens as the longest text. The page's function `tell` is called before each figure.
 *
 * @param {{ runs: number, patience: number }} given
 */
export async function embeddings({ runs, patience }) {
  const { model, tell } = globalThis
  const { contextLength, vocabSize, embeds } = model.info
  const [TOKENS, LONGEST] = [16_384, 1024]
  const texts = (length, count, run) =>
    Array.from({ length: count }, (_, text) =>
      Uint32Array.from({ length }, (_, i) => (i * 31 + text * 7 + run * 977 + 1) % Math.min(vocabSize, 4000)))
  const several = async take => {
    const start = performance.now()
    // The first run warms up.
    await take(0)
    const values = [await take(1)]
    while (values.length < runs && performance.now() - start < 1000 * patience) values.push(await take(values.length + 1))
    return values
  }
  const figures = []
  const add = async (what, take) => {
    await tell(what)
    figures.push({ what, unit: 'tok/s', values: await several(take) })
  }
  for (const length of [16, 64, 256, LONGEST].filter(length => length < contextLength)) {
    await add(`vectors of texts of ${length} tokens`, async run => {
      const all = texts(length, TOKENS / length, run)
      const start = performance.now()
      await model.embed(all, { pooling: 'mean' })
      return TOKENS / ((performance.now() - start) / 1000)
    })
  }
  if (!embeds && LONGEST < contextLength) {
    await add(`prefill, ${LONGEST}-token prompt`, async run => {
      const [prompt] = texts(LONGEST, 1, 100 + run)
      const { timeToFirstToken } = await model.generate(prompt, { maxTokens: 1, promptLookup: false }).stats
      return LONGEST / (timeToFirstToken / 1000)
    })
  }
  return { info: model.info, figures }
}

/**
 * Times answers of `tokens` tokens with prompt lookup and without. The prompt counts up, then
 * starts over; a model of `tritloom random --counting` continues the count, so its answer repeats
 * the prompt. In a second round one token in `changed` of the prompt is another, so that some drafts
 * are wrong. All that again with each of `options`, if there are any.
 *
 * @param {{ tokens: number, runs: number, options?: Record<string, object> }} given
 */
export async function lookups({ tokens, runs, options }) {
  const { model } = globalThis
  const { contextLength, vocabSize } = model.info
  const START = 16
  const answer = async (text, promptLookup, more) => {
    const generation = model.generate(text, { maxTokens: tokens, promptLookup, ...more })
    const ids = []
    for await (const { id } of generation.tokens()) if (id !== undefined) ids.push(id)
    return { ids, stats: await generation.stats }
  }
  const found = []
  const rounds = Object.entries({ none: {}, ...options }).flatMap(([given, more]) =>
    [undefined, 20].map(changed => ({ changed, given, more }))
  )
  for (const { changed, given, more } of rounds) {
    const all = Array.from({ length: tokens + START }, (_, i) =>
      changed && i % changed === changed - 1 ? i + (vocabSize >> 1) : i
    )
    const text = Uint32Array.from([...all, ...all.keys().take(START)], id => id % vocabSize)
    if (text.length + tokens > contextLength) continue
    // The first answer warms up.
    let last = await answer(text, true, more)
    const expected = await answer(text, false, more)
    const rates = { plain: [], lookup: [] }
    for (let run = 0; run < runs; run++) {
      rates.plain.push((await answer(text, false, more)).stats.decodeTokensPerSecond)
      last = await answer(text, true, more)
      rates.lookup.push(last.stats.decodeTokensPerSecond)
      if (String(last.ids) !== String(expected.ids))
        throw new Error('prompt lookup changed an answer')
    }
    const { draftedTokens, acceptedTokens, draftPasses } = last.stats
    found.push({
      changed,
      ...(given !== 'none' && { given }),
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
 * There is a rate for each thousand tokens, and `first` and `last` for the first and the last
 * thousand. Tokens far into a context take longer. So `lastAtFirst` is the rate at the positions of
 * the last thousand when they were reached for the first time: if `last` is lower, it got slower.
 */
export async function soak(tokens) {
  const { model } = globalThis
  const { contextLength, vocabSize } = model.info
  /** Tokens of a turn's prompt. */
  const TURN = 16
  const taken = []
  let [chats, turns] = [0, 0]
  let history = []
  // The second limit stops a model that ends every answer at once.
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

/** Runs in the worker: the size of the crate's memory, in bytes. */
export async function wasmBytes() {
  // The module is loaded already: a second call returns it.
  const { default: init } = await import(`${location.origin}/pkg/tritloom.js`)
  return (await init()).memory.buffer.byteLength
}

/** Runs in the worker: from now on, counts the bytes of GPU buffers that exist. */
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
