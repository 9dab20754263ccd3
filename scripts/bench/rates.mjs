// How fast an engine answers, measured from outside: when it is asked, and when tokens come. The same in a page and
// in Node, for tritloom and for its peers.

/**
 * An answer that is being made.
 * @typedef {object} Answer
 * @property {AsyncIterator<unknown>} tokens comes with each token
 * @property {() => void} stop asks the engine to end it
 */

/**
 * A quantity that was measured. `why` says what is missing, if something is.
 * @typedef {object} Rate
 * @property {string} what
 * @property {number[]} values tokens a second
 * @property {string} [why]
 */

/**
 * Times answers of `tokens` tokens after prompts of the lengths `decode`, and first tokens after prompts of the lengths
 * `prefill`, of which the rate is that of the prompt's tokens. The first of `runs` + 1 runs warms up. Each quantity may
 * take `patience` seconds: where its runs take longer, there are fewer of them, and an answer ends. Once an engine has
 * not given a token in that time, nothing more is asked of it.
 *
 * @param {(prompt: number[], tokens: number) => Answer} answer
 * @param {{
 *   decode: number[], prefill: number[], tokens: number, runs: number, patience: number, vocabSize: number
 * }} how
 * @returns {Promise<Rate[]>}
 */
export async function rates(answer, { decode, prefill, tokens, runs, patience, vocabSize }) {
  /** Why the engine is asked for nothing more. */
  let hangs
  const measure = async (what, length, count, rate) => {
    if (hangs) return { what, values: [], why: hangs }
    const values = []
    const start = performance.now()
    while (values.length <= runs && (values.length === 0 || since(start) < patience)) {
      const took = await timed(answer(prompt(length, values.length, vocabSize), count), count, patience)
      if (took.hangs) hangs = `no token for ${patience} s in an answer before`
      const value = rate(took)
      if (value === undefined) {
        const why = took.late ? `${took.at.length} of its tokens in ${patience} s` : 'its answers end at once'
        return { what, values: [], why }
      }
      values.push(value)
      if (took.hangs) break
    }
    return { what, values: values.length > 1 ? values.slice(1) : values }
  }
  const found = []
  for (const length of decode)
    found.push(await measure(
      `decode, ${length} tokens of context`, length, tokens,
      ({ at }) => at.length > 1 ? (at.length - 1) / (at.at(-1) - at[0]) : undefined
    ))
  for (const length of prefill)
    found.push(await measure(`prompt of ${length} tokens`, length, 1, ({ at: [first] }) => first && length / first))
  return found
}

const since = start => (performance.now() - start) / 1000

/** Token ids that differ from the beginning of every other run's prompt, so that no engine finds it in its KV cache. */
const prompt = (length, run, vocabSize) =>
  Array.from({ length }, (_, i) => (i * 31 + run * 977 + length * 13 + 1) % Math.min(vocabSize, 4000))

/**
 * The seconds after which each token came. `late`: the answer was stopped after `patience` seconds. `hangs`: the next
 * token had not come after as long again.
 */
async function timed({ tokens, stop }, count, patience) {
  const after = seconds => new Promise(resolve => setTimeout(resolve, 1000 * seconds, 'late'))
  const start = performance.now()
  const at = []
  while (at.length < count) {
    const next = tokens.next()
    const left = Math.max(0, patience - since(start))
    let result = await Promise.race([next, after(left)])
    if (result === 'late') {
      stop()
      result = await Promise.race([next.catch(() => ({ done: true })), after(patience)])
      if (result === 'late') return { at, late: true, hangs: true }
      await tokens.return?.()
      return { at, late: true, hangs: false }
    }
    if (result.done) break
    at.push(since(start))
  }
  stop()
  await tokens.return?.()
  return { at, late: false, hangs: false }
}
