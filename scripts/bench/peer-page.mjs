// The functions that the comparison with a peer runs in the page. Each is sent there as text, so it
// can use nothing outside itself.

/**
 * Loads the model with the peer, then with tritloom, and leaves both in the page. Each generates
 * one token. Resolves to two times for each, in milliseconds from the call of `load`: until it
 * resolves, and until the first token. Fails if the peer needs more than `patience` seconds.
 */
export async function loadBoth({ cache, patience, gpu, backend }) {
  const { BitNet: Peer } = await import('/peer/index.js')
  const { BitNet } = await import('/pkg/index.js')
  const address = new URL('/model.gguf', location.href).href
  const { debug } = console
  let promptTokens = 8
  console.debug = (...values) => {
    promptTokens = Number(/generate: (\d+) input tokens/.exec(values[0])?.[1] ?? promptTokens)
  }
  const timed = async (load, answer) => {
    const start = performance.now()
    const model = await load()
    const loaded = performance.now() - start
    for await (const _ of answer(model)) break
    return { model, loaded, first: performance.now() - start }
  }
  const late = new Promise((_, reject) => {
    const error = new Error(`the peer has given no token ${patience} s after the call of its load`)
    setTimeout(reject, 1000 * patience, error)
  })
  late.catch(() => {})
  globalThis.peer?.dispose()
  await globalThis.model?.dispose()
  try {
    const theirs = await Promise.race([
      timed(
        () => Peer.load(address),
        peer => peer.generate('Once upon a time, there was', { maxTokens: 1, topK: 1 })
      ),
      late
    ])
    const ours = await timed(
      () => BitNet.load(address, { cache, gpu, backend }),
      model => model.generate(new Uint32Array(promptTokens).fill(1), { maxTokens: 1 }).tokens()
    )
    Object.assign(globalThis, { peer: theirs.model, model: ours.model })
    const times = ({ loaded, first }) => ({ loaded, first })
    const { info } = ours.model
    return { ours: times(ours), peer: times(theirs), info, userAgent: navigator.userAgent }
  } finally {
    console.debug = debug
  }
}

/**
 * Times the answers of both, in turn, to a prompt of `words` words. The peer prints on the console
 * how many tokens its prompt has; tritloom gets a prompt of as many. Both are timed as a page sees
 * them: when it makes the call, and when tokens come. If the peer gives no token, that was the last
 * run.
 */
export async function answerBoth({ words, tokens, runs, patience }) {
  const { peer, model } = globalThis
  const { contextLength, vocabSize } = model.info
  const list = [
    'the',
    'little',
    'dog',
    'saw',
    'a',
    'red',
    'ball',
    'and',
    'ran',
    'to',
    'it',
    'with',
    'her',
    'friend'
  ]
  const text = Array.from({ length: words }, (_, i) => list[(i * i + i) % list.length]).join(' ')

  let promptTokens
  const { debug } = console
  console.debug = (...values) => {
    const found = /generate: (\d+) input tokens/.exec(values[0])
    if (found) promptTokens = Number(found[1])
  }
  const wait = ms => new Promise(resolve => setTimeout(resolve, ms, 'late'))
  /**
   * Milliseconds to the first token, and tokens per second after it. An answer ends when the time
   * is up. `hangs`: as long again after that, the token in progress has not come either.
   */
  const times = async answer => {
    const iterator = answer[Symbol.asyncIterator]()
    const start = performance.now()
    const at = []
    const late = wait(1000 * patience)
    let hangs = false
    while (at.length < tokens) {
      const next = iterator.next()
      const result = await Promise.race([next, late])
      if (result === 'late') {
        hangs = (await Promise.race([next, wait(1000 * patience)])) === 'late'
        break
      }
      if (result.done) break
      at.push(performance.now())
    }
    if (!hangs) await iterator.return?.()
    // Let the GPU finish what is queued, so that the next answer is not timed with it.
    await wait(100)
    const first = at.length > 0 ? at[0] - start : undefined
    const decode = at.length > 1 ? (1000 * (at.length - 1)) / (at.at(-1) - at[0]) : undefined
    return { first, decode, hangs }
  }
  // Other tokens in each run. The peer reads its prompt anew each time; tritloom would find the
  // same prompt in its KV cache.
  const prompt = run =>
    Uint32Array.from(
      { length: promptTokens },
      (_, i) => (i * 31 + run * 977 + promptTokens * 13 + 1) % Math.min(vocabSize, 4000)
    )
  const found = { peer: [], ours: [] }
  try {
    // The first run of each warms up.
    for (let run = 0; run <= runs; run++) {
      const theirs = await times(
        peer.generate(text, { maxTokens: tokens, topK: 1, temperature: 1 })
      )
      if (promptTokens === undefined)
        throw new Error('the peer does not report how many tokens its prompt has')
      if (promptTokens + tokens > contextLength) break
      const ours = await times(
        model.generate(prompt(run), { maxTokens: tokens, promptLookup: false }).tokens()
      )
      // The peer may still be at work, and would slow down whatever is timed next.
      const ends = theirs.hangs || theirs.first === undefined
      if (run === 0 && !ends) continue
      found.peer.push(theirs)
      found.ours.push(ours)
      if (ends) break
    }
  } finally {
    console.debug = debug
  }
  return { promptTokens, ...found }
}
