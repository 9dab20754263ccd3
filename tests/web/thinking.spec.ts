// Chat templates and reasoning, in a worker and in this thread alike. The model is made by hand and
// says the same whatever it is asked: see tests/data/thinking/make.py.
import { expect, failure, GOLDEN_MODEL, load, test } from './harness'

test.use({ backend: 'cpu' })

const MODEL = '/tests/data/thinking/thinking.gguf'
const REASONING = 'Is it cold? In summer no.'
const ANSWER = 'It is warm today!'

test('without `special`, the name of a token is text', async ({ shared: page }) => {
  await load(page, { template: 'file' }, MODEL)
  const found = await page.evaluate(async () => {
    const { model } = window
    const raw = async (special: boolean) =>
      (await model.generate('<think>', { raw: true, special, maxTokens: 1 }).stats).promptTokens
    return {
      text: (await model.tokenize('<think>')).length,
      counted: await model.countTokens('<think>'),
      special: (await model.tokenize('<think>', { special: true })).length,
      raw: [await raw(false), await raw(true)]
    }
  })
  expect(found.special).toBe(1)
  expect(found.text).toBeGreaterThan(1)
  expect(found.counted).toBe(found.text)
  expect(found.raw[0]).toBeGreaterThan(found.raw[1]!)
})

for (const worker of [true, false]) {
  test.describe(worker ? 'in a worker' : 'in this thread', () => {
    const options = { ...(worker ? {} : { worker: false }), template: 'file' }

    test('reasoning comes apart from the answer', { tag: '@quick' }, async ({ shared: page }) => {
      const info = await load(page, options, MODEL)
      expect(info).toMatchObject({ template: 'file', stopTokens: ['<|end|>'], thinking: true })
      const found = await page.evaluate(async () => {
        const generation = window.model.generate('Is it warm?')
        let looped = ''
        for await (const text of generation) looped += text
        const byChannel = { reasoning: '', answer: '', call: '' }
        for await (const { text, channel } of generation.tokens()) byChannel[channel] += text
        const [text, reasoning] = [await generation.text(), await generation.reasoning()]
        return { looped, byChannel, text, reasoning, stats: await generation.stats }
      })
      expect(found).toMatchObject({
        looped: ANSWER, text: ANSWER, reasoning: REASONING,
        byChannel: { reasoning: REASONING, answer: ANSWER, call: '' },
        stats: { completionTokens: 17, reasoningTokens: 11, finishReason: 'stop' }
      })
    })

    test('reasoning can be switched off and limited', async ({ shared: page }) => {
      await load(page, options, MODEL)
      const found = await page.evaluate(async () => {
        const said = async (options: object) => {
          const generation = window.model.generate('Is it warm?', options)
          return [await generation.reasoning(), await generation.text()]
        }
        return [await said({ thinking: false }), await said({ thinking: true }), await said({ maxThinkingTokens: 3 })]
      })
      expect(found).toEqual([['', ANSWER], [REASONING, ANSWER], ['Is it', ANSWER]])
    })

    test('a chat does not send reasoning back', async ({ shared: page }) => {
      await load(page, options, MODEL)
      const found = await page.evaluate(async () => {
        const chat = window.model.createChat()
        const first = chat.send('Is it warm?')
        const second = chat.send('And tomorrow?')
        const texts = [await first.text(), await second.text(), await second.reasoning()]
        const [before, after] = [await first.stats, await second.stats]
        return { texts, messages: chat.messages, prompt: before.promptTokens, reused: after.reusedTokens }
      })
      expect(found.texts).toEqual([ANSWER, ANSWER, REASONING])
      expect(found.messages.map(({ content }) => content)).toEqual(['Is it warm?', ANSWER, 'And tomorrow?', ANSWER])
      // The prompt before the reasoning is still in the cache, and nothing after it.
      expect(found.reused).toBe(found.prompt)
    })
  })
}

test('a template may be given, or the built-in one used', async ({ shared: page }) => {
  const template = '{{ messages[0].content }}<|eot_id|>{{ messages[0].content }}'
  const info = await load(page, { template }, GOLDEN_MODEL)
  expect(info).toMatchObject({ template: 'given', thinking: false })
  const counts = await page.evaluate(async () => {
    const { model } = window
    const [text, prompt] = ['<|eot_id|>', [{ role: 'user' as const, content: '<|eot_id|>' }]]
    return [await model.countTokens(text), await model.countTokens(prompt)]
  })
  // Two messages' worth of plain characters, the template's own token, and the beginning of text.
  expect(counts[1]).toBe(2 * counts[0]! + 2)
  expect(await load(page, { template: 'builtin' }, GOLDEN_MODEL)).toMatchObject({ template: 'builtin: bitnet' })
})

test('templates and switches that cannot be are refused', async ({ shared: page }) => {
  const loading = (template: unknown) =>
    failure(page, `await load('${GOLDEN_MODEL}', { template: ${JSON.stringify(template)} })`)
  expect(await loading('{% for')).toMatchObject({ code: 'bad-template' })
  expect(await loading('file')).toMatchObject({ code: 'bad-option', message: expect.stringContaining('has none') })
  expect(await loading(7)).toMatchObject({ code: 'bad-option' })
  await load(page, {}, GOLDEN_MODEL)
  const asking = (options: string) => failure(page, `await model.generate('Who are you?', ${options}).text()`)
  expect(await asking('{ thinking: true }')).toMatchObject({ code: 'bad-option', message: expect.stringContaining('no such switch') })
  expect(await asking('{ thinking: 1 }')).toMatchObject({ code: 'bad-option' })
  expect(await asking('{ maxThinkingTokens: 0 }')).toMatchObject({ code: 'bad-option' })
  await load(page, { template: '{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}' }, GOLDEN_MODEL)
  expect(await asking('{}')).toMatchObject({ code: 'bad-template' })
  await load(page, { template: '{% set ns = namespace(s=[1]) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}{% endfor %}' }, GOLDEN_MODEL)
  expect(await asking('{}')).toMatchObject({ code: 'bad-template' })
  await load(page, { template: "{% set a = 'b' * 3200000 %}{% set b = 'b' * 3200000 %}{% for i in range(20000) %}{{ a == b }}{% endfor %}" }, GOLDEN_MODEL)
  expect(await asking('{}')).toMatchObject({ code: 'bad-template' })
  // Each character of one text was compared with each of the other, which held a page for more than 400 s.
  await load(page, { template: "{% set a = 'a' * 1048576 %}{% set b = 'b' * 1048576 ~ 'a' %}{{ a.strip(b) }}" }, GOLDEN_MODEL)
  const begun = Date.now()
  expect(await asking('{}')).toMatchObject({ code: 'none' })
  expect(Date.now() - begun).toBeLessThan(20_000)
  await load(page, { template: '{{ raise_exception("only in French") }}' }, GOLDEN_MODEL)
  expect(await asking('{}')).toMatchObject({ code: 'bad-option', message: expect.stringContaining('only in French') })
})
