// Answers in a format, in a page of any browser. Formats by themselves are tested without a page, in
// tests/grammar/ and tests/session/format.rs, and the script around the module in
// tests/pkg/formats.test.mjs.
import { expect, failure, load } from './harness'
import type { InPage } from './harness'

const SCHEMA = {
  type: 'object',
  properties: {
    kind: { enum: ['cat', 'dog'] },
    name: { type: 'string', maxLength: 6 },
    legs: { type: 'integer', minimum: 3, maximum: 4 }
  },
  required: ['kind', 'name', 'legs'],
  additionalProperties: false
} as const

/** Answers by a schema and a regular expression, their values as they grow, and those that are cut off. */
export async function expectFormats(page: InPage, url: string, worker: boolean): Promise<void> {
  await load(page, worker ? {} : { worker }, url)
  const found = await page.evaluate(async schema => {
    const { model } = window
    const responseFormat = { type: 'json_schema', schema } as const
    const prompt = 'Who are you?'
    const free = await model.generate(prompt).text()
    const answer = model.generate(prompt, { responseFormat })
    const partials: object[] = []
    for await (const partial of answer.partials<object>()) partials.push(partial)
    const cut = model.generate(prompt, { responseFormat, maxTokens: 4 })
    const why = await cut.json().then(() => 'none', (error: { code: string }) => error.code)
    const chat = model.createChat()
    const pattern = await chat.send(prompt, { responseFormat: /(?:ab|cd){2}-\d{3}/, temperature: 1, seed: 5 }).text()
    const stats = await answer.stats
    const text = await answer.text()
    // An answer that is begun, and one that was cut off, keep to the format as a whole.
    const begun = model.generate([{ role: 'user', content: prompt }, { role: 'assistant', content: text.slice(0, 11), prefix: true }], { responseFormat })
    await chat.send(prompt, { responseFormat, maxTokens: 4 }).text()
    const rest = chat.continue({ responseFormat })
    const continued = [await rest.json(), JSON.parse(chat.messages.at(-1)!.content)]
    return {
      free, whole: await answer.json<object>(), text, begun: await begun.json(), continued, partials, stats, pattern,
      messages: chat.messages.slice(0, 2),
      cut: [(await cut.stats).finishReason, why, await cut.text()], after: await model.generate(prompt).text()
    }
  }, SCHEMA)
  const { kind, name, legs, ...others } = found.whole as Record<'kind' | 'name', string> & { legs: number }
  expect(others).toEqual({})
  expect(['cat', 'dog']).toContain(kind)
  expect([...name].length).toBeLessThanOrEqual(6)
  expect([3, 4]).toContain(legs)
  expect(found.text).toBe(JSON.stringify(found.whole))
  expect(found.partials[0]).toEqual({})
  expect(found.partials.at(-1)).toEqual(found.whole)
  expect(found.partials.length).toBeGreaterThan(3)
  expect(found.stats.finishReason).toBe('stop')
  expect(found.begun).toEqual(found.whole)
  expect(found.continued[0]).toEqual(found.continued[1])
  expect(Object.keys(found.continued[0] as object)).toEqual(Object.keys(found.whole))
  expect(found.pattern).toMatch(/^(?:ab|cd){2}-\d{3}$/)
  expect(found.messages.at(-1)).toEqual({ role: 'assistant', content: found.pattern })
  expect(found.cut.slice(0, 2)).toEqual(['length', 'incomplete'])
  expect(found.text.startsWith(found.cut[2]!)).toBe(true)
  // Answers without a format stay as they are.
  expect(found.after).toBe(found.free)

  const schema = { type: 'object', properties: { 'a/b': { type: 'array', uniqueItems: true } } }
  const options = JSON.stringify({ responseFormat: { type: 'json_schema', schema } })
  const refused = await failure(page, `await model.generate('Who are you?', ${options}).text()`)
  expect(refused.code).toBe('bad-option')
  expect(refused.message).toContain('`responseFormat.schema`: `/properties/a~1b/uniqueItems` of the schema is not supported')
  expect((await failure(page, `await model.generate('a', { responseFormat: 'json' }).text()`)).message).toContain('`responseFormat`: must be an object')
}
