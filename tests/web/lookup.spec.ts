// Prompt lookup: the same greedy tokens in fewer passes.
import { lookups } from '../../scripts/bench/page.mjs'
import { lookupGain } from '../../scripts/bench/table.mjs'
import { expect, load, RANDOM_MODEL, test } from './harness'

test('a text that repeats itself takes fewer passes, and stays the same', async ({ harness }) => {
  test.setTimeout(300_000)
  await load(harness, {}, RANDOM_MODEL)
  const [plain, found] = await harness.evaluate(async () => {
    const run = async (prompt: Uint32Array, promptLookup: boolean | undefined, maxTokens: number) => {
      const generation = window.model.generate(prompt, { maxTokens, promptLookup })
      const ids = []
      for await (const { id } of generation.tokens()) if (id !== undefined) ids.push(id)
      return { ids, stats: await generation.stats }
    }
    // Weights without a meaning soon go round in circles.
    const start = Uint32Array.from([1, 2, 3, 4, 5])
    const prompt = Uint32Array.from([...start, ...(await run(start, false, 60)).ids])
    return [await run(prompt, false, 40), await run(prompt, true, 40)] as const
  })
  expect(found.ids).toEqual(plain.ids)
  expect(plain.stats).toMatchObject({ draftPasses: 0, draftedTokens: 0, acceptedTokens: 0 })
  expect(found.stats.draftPasses).toBeGreaterThan(0)
  expect(found.stats.acceptedTokens).toBeGreaterThan(found.stats.draftPasses)
})

test('the benchmark compares the same answers', async ({ harness }) => {
  await load(harness, {}, RANDOM_MODEL)
  const gains = (await harness.evaluate(lookups, { tokens: 24, runs: 1 })).map(lookupGain)
  expect(gains.map(({ changed, promptTokens, tokens }) => [changed, promptTokens, tokens])).toEqual([[undefined, 56, 24], [20, 56, 24]])
  for (const { plain, lookup, gain, draftedTokens, acceptedTokens, draftPasses, acceptedPerPass } of gains) {
    expect(plain.median).toBeGreaterThan(0)
    expect(gain).toBeCloseTo(lookup.median / plain.median, 9)
    expect(acceptedTokens).toBeLessThanOrEqual(draftedTokens)
    expect(acceptedPerPass).toBe(draftPasses ? acceptedTokens / draftPasses : 0)
  }
})
