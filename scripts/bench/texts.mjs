// Prompts as texts, for engines that take nothing else.

const WORDS = 'the little dog saw a red ball and ran to it with her friend because they wanted more'.split(' ')
/** Ends of texts, so that a text has the right number of tokens. */
const ENDS = [' a', 'x', '.', ' I', '!', 'q', ' 7', '?', 'z']

/**
 * For each length of `decode` and `prefill`, a text of that many tokens for each of `runs` + 1 runs. They begin in
 * different ways, so that no engine finds one in its KV cache.
 *
 * @param {(text: string) => Promise<Uint32Array>} tokenize
 * @param {{ decode: number[], prefill: number[], runs: number }} how
 * @returns {Promise<Record<number, { text: string, ids: Uint32Array }[]>>}
 */
export async function promptTexts(tokenize, { decode, prefill, runs }) {
  const texts = {}
  for (const length of new Set([...decode, ...prefill])) {
    texts[length] = []
    for (let run = 0; run <= runs; run++) texts[length].push(await textOf(tokenize, length, run))
  }
  return texts
}

async function textOf(tokenize, length, run) {
  const word = at => WORDS[(at * at + at + 7 * run) % WORDS.length]
  let text = `${String.fromCharCode(98 + run % 25)}${length}`
  const count = async text => (await tokenize(text)).length
  for (let at = run; ; at++) {
    const longer = `${text} ${word(at)}`
    if (await count(longer) > length) break
    text = longer
  }
  let left = length - await count(text)
  while (left > 0) {
    let best
    for (const end of ENDS) {
      const rest = length - await count(text + end)
      if (rest >= 0 && rest < left) best = { text: text + end, left: rest }
    }
    if (!best) break
    ;({ text, left } = best)
  }
  const ids = await tokenize(text)
  if (ids.length !== length) throw new Error(`no text of ${length} tokens was found`)
  return { text, ids }
}
