// Prompt lookup: the same greedy tokens in fewer steps.
import { lookups } from '../../scripts/bench/page.mjs'
import { lookupGain } from '../../scripts/bench/table.mjs'
import { expect, load, RANDOM_MODEL, test } from './harness'

test.use({ backend: 'cpu' })

test('a text that repeats itself takes fewer steps, and stays the same', async ({ shared }) => {
  await load(shared, {}, RANDOM_MODEL)
  const [plain, found] = await shared.evaluate(async () => {
    const run = async (prompt: Uint32Array, promptLookup: boolean | undefined, maxTokens: number) => {
      const generation = window.model.generate(prompt, { maxTokens, promptLookup })
      const ids = []
      for await (const { id } of generation.tokens()) if (id !== undefined) ids.push(id)
      return { ids, stats: await generation.stats }
    }
    // Random weights soon repeat themselves.
    const start = Uint32Array.from([1, 2, 3, 4, 5])
    const prompt = Uint32Array.from([...start, ...(await run(start, false, 60)).ids])
    return [await run(prompt, false, 40), await run(prompt, true, 40)] as const
  })
  expect(found.ids).toEqual(plain.ids)
  expect(plain.stats).toMatchObject({ draftPasses: 0, draftedTokens: 0, acceptedTokens: 0 })
  expect(found.stats.draftPasses).toBeGreaterThan(0)
  expect(found.stats.acceptedTokens).toBeGreaterThan(found.stats.draftPasses)
})

test('the benchmark compares the same answers', async ({ shared }) => {
  await load(shared, {}, RANDOM_MODEL)
  // So weak that the text still repeats itself.
  const options = { weak: { repeatPenalty: 1.0001, frequencyPenalty: 0.0001, logitBias: { 3: 0.01 }, logprobs: 2 } }
  const found = await shared.evaluate(lookups, { tokens: 24, runs: 1, options })
  const gains = found.map(found => ({ ...found, ...lookupGain(found) }))
  // Prompts that repeat themselves exactly, and with every twentieth token changed.
  const prompts = [{}, { changed: 20 }, { given: 'weak' }, { given: 'weak', changed: 20 }]
  expect(gains).toEqual(prompts.map(prompt => expect.objectContaining({ ...prompt, promptTokens: 56, tokens: 24 })))
  for (const { plain, lookup, draftedTokens, acceptedTokens, draftPasses } of gains) {
    expect(plain.median).toBeGreaterThan(0)
    expect(lookup.median).toBeGreaterThan(0)
    // The model's answers to these prompts repeat themselves too. So there must be drafts, and some
    // of them must be right.
    expect(draftPasses).toBeGreaterThan(0)
    expect(acceptedTokens).toBeGreaterThan(0)
    // A draft pass checks at most seven tokens.
    expect(draftedTokens).toBeLessThanOrEqual(7 * draftPasses)
    expect(acceptedTokens).toBeLessThanOrEqual(draftedTokens)
  }
})

test('the gain that the benchmark reports is the ratio of the rates, and the right tokens of a draft pass', () => {
  const measured = { plain: [30, 10, 20], lookup: [50, 60, 40], draftedTokens: 30, acceptedTokens: 24, draftPasses: 8 }
  expect(lookupGain(measured)).toMatchObject({ gain: 2.5, acceptedPerPass: 3 })
  expect(lookupGain({ ...measured, draftPasses: 0, acceptedTokens: 0 })).toMatchObject({ acceptedPerPass: 0 })
})
