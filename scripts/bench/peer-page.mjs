// What the comparison with a peer runs in the page. Each function is sent there as text, so it
// cannot use what is outside it.

/**
 * Loads the model with the peer and with ternlight, one after the other, lets each generate one
 * token, and leaves both in the page. Resolves to the milliseconds from the call of `load` to its
 * answer and to the first token. A peer that needs longer than `patience` seconds is an error.
 */
export async function loadBoth({ cache, patience }) {
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
      () => BitNet.load(address, { cache }),
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
 * Times the answers of both to a prompt of `words` words, alternately. ternlight gets as many
 * tokens as the peer reports on the console that it made of the text. Only what a page sees is
 * timed: when the call is made and when tokens come. A peer that gives no token is asked no more.
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
   * Milliseconds to the first token, and tokens per second after it. It stops where the time is up;
   * `hangs`: not even the token that was asked for last has come then.
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
    // What it has queued on the GPU is no part of the next answer.
    await wait(100)
    const first = at.length > 0 ? at[0] - start : undefined
    const decode = at.length > 1 ? (1000 * (at.length - 1)) / (at.at(-1) - at[0]) : undefined
    return { first, decode, hangs }
  }
  // Other tokens in each run: ternlight would reuse what it has read already, which the peer does
  // not.
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
      // It may still be at work: what followed would be timed beside it.
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
