// `model.inspect` and `tritloom/weights` in a browser, on the GPU and on the CPU. That the numbers are right is in
// tests/session/inspect.rs and tests/blocks.rs: here they are compared with other calls of the same model.
import { expect, failure, load, test } from './harness'

const MODEL = '/tests/data/models/qwen3-q2_0.gguf'

for (const backend of ['webgpu', 'cpu'] as const) {
  test.describe(`on the ${backend}`, () => {
    test.use({ backend })
    test('tokens, candidates, activations and attention of a text', async ({ shared: page }) => {
      await load(page, { cache: 'off' }, MODEL)
      const { found, logits, ids, shares, layers, heads, weights } = await page.evaluate(async () => {
        const { model } = window
        const shares: number[] = []
        const found = await model.inspect('The dog ran.', {
          what: ['candidates', 'activations', 'attention'], at: ['block', 'qkv'], layer: 1, head: 1, top: 2,
          onProgress: share => { shares.push(share) }
        })
        const ids = Uint32Array.from(found.tokens, ({ id }) => id)
        const logits = [...await model.logits(ids)]
        const { layers, heads } = model.info
        return { found, logits, ids: [...ids], shares, layers, heads, weights: [...found.attention!.weights] }
      })
      const { tokens, activations, attention } = found
      expect(tokens.map(({ text }) => text).join('')).toContain('The dog ran.')
      expect(heads).toBeGreaterThan(1)
      // The last token's candidates are the best of all logits.
      const greatest = Math.max(...logits)
      const total = logits.reduce((sum, logit) => sum + Math.exp(logit - greatest), 0)
      const best = tokens.at(-1)!.next!
      expect(best).toHaveLength(2)
      expect(best[0]!.id).toBe(logits.indexOf(greatest))
      expect(best[0]!.logprob).toBeCloseTo(-Math.log(total), 2)
      expect(tokens[0]).not.toHaveProperty('logprob')
      for (const { logprob } of tokens.slice(1)) expect(logprob).toBeLessThanOrEqual(0)
      // In a layer `qkv` comes before `block`, in whatever order they were asked for.
      expect(activations!.map(({ layer, at }) => [layer, at])).toEqual(
        Array.from({ length: layers }, (_, layer) => [[layer, 'qkv'], [layer, 'block']]).flat()
      )
      for (const { min, max, rms, notFinite } of activations!) expect([min < max, rms > 0, notFinite]).toEqual([true, true, 0])
      expect([attention!.layer, attention!.head, weights.length]).toEqual([1, 1, ids.length ** 2])
      for (let n = 0; n < ids.length; n++) {
        const row = weights.slice(n * ids.length, (n + 1) * ids.length)
        expect(row.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 4)
        expect(row.slice(n + 1).every(weight => weight === 0)).toBe(true)
      }
      expect(shares.at(-1)).toBe(1)
    })
  })
}

test('a conversation has its template, ids are taken as they are, and wrong options are named', async ({ shared: page }) => {
  await load(page, { cache: 'off' }, MODEL)
  const { chat, counted, bare } = await page.evaluate(async () => {
    const { model } = window
    const messages = [{ role: 'user' as const, content: 'Hi' }]
    const chat = await model.inspect(messages, { what: ['candidates'], top: 20 })
    return { chat, counted: await model.countTokens(messages), bare: await model.inspect(Uint32Array.of(5, 6)) }
  })
  expect([chat.tokens.length, chat.tokens.some(({ special }) => special)]).toEqual([counted, true])
  // Special tokens are seen, among the prompt's and among those that could have come.
  const texts = new Map(chat.tokens.filter(({ special }) => special).map(({ id, text }) => [id, text]))
  for (const text of texts.values()) expect(text).toMatch(/^<.+>$/)
  for (const { id, text } of chat.tokens.flatMap(({ next = [] }) => next)) {
    if (texts.has(id)) expect(text).toBe(texts.get(id))
  }
  expect(bare.tokens.map(({ id }) => id)).toEqual([5, 6])
  expect(Object.keys(bare)).toEqual(['tokens'])
  for (const [options, said] of [
    [`{ what: ['logits'] }`, 'what[0]'], [`{ what: ['activations'], at: ['ffn'] }`, 'at[0]'],
    [`{ what: ['activations'], at: [] }`, 'at'], ['{ top: 21 }', 'top'],
    [`{ what: ['attention'], layer: 99 }`, 'layer'], [`{ what: ['attention'], head: 99 }`, 'head'], ['{ layers: 1 }', 'layers']
  ]) {
    expect(await failure(page, `await window.model.inspect('a', ${options})`), options).toMatchObject({
      code: 'bad-option', message: expect.stringContaining(`\`${said}\``)
    })
  }
  expect(await failure(page, `await window.model.inspect('')`)).toMatchObject({ code: 'bad-option' })
  const why = await page.evaluate(() => {
    const stop = new AbortController()
    const running = window.model.inspect('The dog ran.', { what: ['activations'], signal: stop.signal, onProgress: () => stop.abort(new Error('enough')) })
    return running.then(() => 'none', (error: Error) => error.message)
  })
  expect(why).toBe('enough')
})

test('the weights of a file are those of its values, from a blob and from an address', async ({ harness: page }) => {
  const { blob, url, codes } = await page.evaluate(async address => {
    const { openWeights } = await import('/pkg/weights.js' as string)
    const look = async (source: Blob | string) => {
      const file = await openWeights(source)
      const { name } = file.tensors.find(({ type }: { type: string }) => type === 'Q2_0')
      const shares: number[] = []
      const found = await file.statistics(name, { onProgress: (share: number) => { shares.push(share) } })
      const { shape } = file.tensors.find((tensor: { name: string }) => tensor.name === name)
      const values = [...await file.rows(name, 0, shape[1])] as number[]
      const count = (sign: number) => values.filter(value => Math.sign(value) === sign).length
      return { found, counted: [count(-1), count(0), count(1)], elements: shape[0] * shape[1], last: shares.at(-1), bytes: file.bytes }
    }
    const codeOf = (work: Promise<unknown>) => work.then(() => 'none', (error: { code: string }) => error.code)
    const blob = await (await fetch(address)).blob()
    const file = await openWeights(blob)
    return {
      blob: await look(blob), url: await look(address),
      codes: [
        await codeOf(openWeights(new Blob(['no model']))), await codeOf(openWeights('/tests/data/models/none.gguf')),
        await codeOf(openWeights(7 as never)), await codeOf(file.statistics('none')), await codeOf(file.rows('output_norm.weight', 0, 2))
      ]
    }
  }, MODEL)
  expect(blob.found.counts).toEqual(blob.counted)
  expect(blob.counted.reduce((sum, count) => sum + count, 0)).toBe(blob.elements)
  expect(blob.last).toBe(1)
  expect(url).toEqual(blob)
  expect(codes).toEqual(['bad-gguf', 'http', 'bad-option', 'bad-option', 'bad-option'])
})
