// How fast an engine answers, measured from outside: when it is asked, and when tokens come. The same in a page and
// in Node, for tritloom and for its peers.

/**
 * An answer that is being made. `tokens` comes with the number of tokens so far.
 * @typedef {{ tokens: AsyncGenerator<number>, stop: () => void }} Answer
 */

/**
 * A quantity that was measured, in tokens a second. `why` says what is missing, if something is.
 * @typedef {{ what: string, values: number[], why?: string }} Rate
 */

/**
 * Times answers of `tokens` tokens after prompts of the lengths `decode`, and first tokens after prompts of the lengths
 * `prefill`. The rate of those counts the prompt's tokens. The first of `runs` + 1 runs warms up. Each quantity may
 * take `patience` seconds: where its runs take longer, there are fewer of them, and an answer is stopped. Once an engine
 * gives no token for as long again, nothing more is asked of it.
 *
 * @template Prompt
 * @param {(prompt: Prompt, tokens: number) => Answer} answer
 * @param {(length: number, run: number) => Prompt} prompt a prompt of `length` tokens, another one in each run
 * @param {{ decode: number[], prefill: number[], tokens: number, runs: number, patience: number }} how
 * @returns {Promise<Rate[]>}
 */
export async function rates(answer, prompt, { decode, prefill, tokens, runs, patience }) {
  /** Why the engine is asked for nothing more. */
  let hangs
  const measure = async (what, length, count, rate) => {
    if (hangs) return { what, values: [], why: hangs }
    const values = []
    const start = performance.now()
    while (values.length <= runs && (values.length === 0 || since(start) < patience)) {
      const took = await timed(answer(prompt(length, values.length), count), count, patience)
      if (took.failed) return { what, values: [], why: took.failed }
      if (took.hangs) hangs = `no token for ${patience} s in an answer before`
      const value = rate(took.came)
      if (value === undefined) {
        const why = took.late ? `${took.came.length} of its tokens in ${patience} s` : 'its answers end at once'
        return { what, values: [], why }
      }
      values.push(value)
      if (took.hangs) break
    }
    return { what, values: values.length > 1 ? values.slice(1) : values }
  }
  const found = []
  for (const length of decode)
    found.push(await measure(`decode, ${length} tokens of context`, length, tokens, came => {
      const [first, last] = [came[0], came.at(-1)]
      return came.length > 1 ? (last.made - first.made) / (last.at - first.at) : undefined
    }))
  for (const length of prefill)
    found.push(await measure(`prompt of ${length} tokens`, length, 1, ([first]) => first && length / first.at))
  return found
}

/** Token ids that differ from the beginning of every other run's prompt, so that no engine finds it in its KV cache. */
export const ids = vocabSize => (length, run) =>
  Array.from({ length }, (_, i) => (i * 31 + run * 977 + length * 13 + 1) % Math.min(vocabSize, 4000))

/** The first line of an error, without what a program adds. */
export const lineOf = error => String(error?.message ?? error).split('\n')[0]

const since = start => (performance.now() - start) / 1000

/**
 * When tokens came, in seconds, and how many were made by then. `late`: the answer was stopped after `patience` seconds.
 * `hangs`: the next token had not come after as long again. `failed`: the answer failed before.
 */
async function timed({ tokens, stop }, count, patience) {
  const after = seconds => new Promise(resolve => setTimeout(resolve, 1000 * seconds, 'late'))
  const start = performance.now()
  const came = []
  let late = false
  while (!late && (came.at(-1)?.made ?? 0) < count) {
    const next = tokens.next()
    const ended = next.catch(error => ({ done: true, failed: lineOf(error) }))
    let result = await Promise.race([ended, after(Math.max(0, patience - since(start)))])
    if (result === 'late') {
      late = true
      stop()
      // It may still be computing, and would slow down what is measured next.
      result = await Promise.race([ended, after(patience)])
      if (result === 'late') return { came, late, hangs: true }
    } else if (!result.done) came.push({ at: since(start), made: result.value })
    // An answer that was stopped may fail because of that.
    if (result.failed && !late) return { came, late, hangs: false, failed: result.failed }
    if (result.done) break
  }
  stop()
  await tokens.return?.()
  return { came, late, hangs: false }
}
