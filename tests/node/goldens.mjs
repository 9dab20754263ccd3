// The golden texts, for programs of Node, Deno and Bun alike.
import { readFileSync } from 'node:fs'
import { inRoot } from '../../scripts/paths.mjs'

export const GOLDEN = inRoot('tests', 'data', 'golden', 'golden.gguf')
export const BUNDLED = inRoot('models', 'tiny-stories.gguf')
const readGoldens = name => JSON.parse(readFileSync(inRoot(name), 'utf8')).prompts
/** The longest conversation first: an answer that was just given keeps its own tokens. */
export const goldens = readGoldens('tests/data/golden/golden.json')
  .sort((a, b) => (b.turns?.length ?? 0) - (a.turns?.length ?? 0))
export const bundledGoldens = readGoldens('models/tiny-stories.goldens.json')

/** The greedy continuation of a golden prompt. */
export const continuation = async (model, { kind, turns, text, greedy }) => {
  const raw = kind === 'raw'
  const input = raw ? text : turns.map(([role, content]) => ({ role, content }))
  const answer = model.generate(input, { maxTokens: greedy.length, ...(raw && { raw, special: true }) })
  const tokens = []
  for await (const token of answer.tokens()) tokens.push(token)
  const { promptTokens, finishReason } = await answer.stats
  return { promptTokens, finishReason, ids: tokens.flatMap(({ id }) => id ?? []), text: tokens.map(({ text }) => text).join('') }
}

/** The result that `continuation` should give for a golden prompt. Its list ends with the stop token. */
export const expected = ({ ids, greedy, greedy_stopped: stopped, greedy_text: text }) => ({
  promptTokens: ids.length, finishReason: stopped ? 'stop' : 'length', ids: stopped ? greedy.slice(0, -1) : greedy, text
})
