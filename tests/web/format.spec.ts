// Answers in a format in Chromium. Firefox has the same in firefox.spec.ts.
import { expectFormats } from './formats'
import { expect, GOLDEN_MODEL, load, test } from './harness'

test.use({ backend: 'cpu' })

for (const worker of [true, false]) {
  test(`answers keep to their formats, ${worker ? 'in a worker' : 'in this thread'}`, async ({ shared: page }) => {
    await expectFormats(page, GOLDEN_MODEL, worker)
  })
}

test('answers of two formats and a free one run as a batch, each as alone', async ({ shared: page }) => {
  // On the CPU the first may have ended when the second comes.
  await load(page, { backend: 'webgpu' }, GOLDEN_MODEL)
  const { alone, together, batches } = await page.evaluate(async () => {
    const { model } = window
    const all = [
      { responseFormat: { type: 'regex', pattern: '[a-z ]{60,70}' } },
      { responseFormat: { type: 'json_schema', schema: { type: 'string', minLength: 60, maxLength: 70 } } },
      { maxTokens: 60 }
    ] as const
    const alone: string[] = []
    for (const options of all) alone.push(await model.generate('Who are you?', options).text())
    const answers = all.map(options => model.generate('Who are you?', options))
    const stats = await Promise.all(answers.map(({ stats }) => stats))
    const many = model.generateMany(['Who are you?', 'Why?'], { responseFormat: /yes|no/ })
    const words = await Promise.all(many.map(answer => answer.text()))
    if (!words.every(word => ['yes', 'no'].includes(word))) throw new Error(words.join())
    return { alone, together: await Promise.all(answers.map(answer => answer.text())), batches: stats.map(({ batch }) => batch) }
  })
  expect(together).toEqual(alone)
  expect(together[0]).toMatch(/^[a-z ]{60,70}$/)
  expect(JSON.parse(together[1]!).length).toBeGreaterThanOrEqual(60)
  expect(Math.max(...batches)).toBeGreaterThan(1)
})

test('reasoning is free, and the answer after it keeps to its format', async ({ shared: page }) => {
  await load(page, { template: 'file' }, '/tests/data/thinking/thinking.gguf')
  const found = await page.evaluate(async () => {
    const answer = window.model.generate('Is it warm?', { responseFormat: { type: 'json_schema', schema: { enum: ['yes', 'no'] } } })
    return { reasoning: await answer.reasoning(), json: await answer.json() }
  })
  expect(found.reasoning).toBe('Is it cold? In summer no.')
  expect(['yes', 'no']).toContain(found.json)
})

test('an answer that is stopped while its module is fetched ends at once', async ({ harness: page }) => {
  let send = () => {}
  const held = new Promise<void>(resolve => { send = resolve })
  await page.route('**/grammar.wasm', async route => {
    await held
    await route.continue()
  })
  await load(page, { worker: false }, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const abort = new AbortController()
    const answer = window.model.generate('Who are you?', { responseFormat: /yes/, signal: abort.signal })
    setTimeout(() => abort.abort('enough'), 50)
    const reason = await answer.text().catch(reason => reason)
    const { finishReason, completionTokens } = await answer.stats
    // No call waits for it.
    return { reason, finishReason, completionTokens, logits: (await window.model.logits(Uint32Array.of(1))).length > 0 }
  })
  expect(found).toEqual({ reason: 'enough', finishReason: 'abort', completionTokens: 0, logits: true })
  send()
  expect(await page.evaluate(() => window.model.generate('Who are you?', { responseFormat: /yes/ }).text())).toBe('yes')
})

test('the module is fetched by the first answer in a format, and its prompt is computed meanwhile', async ({ harness: page }) => {
  let [requests, send] = [0, () => {}]
  const held = new Promise<void>(resolve => { send = resolve })
  await page.route('**/grammar.wasm', async route => {
    requests++
    await held
    await route.continue()
  })
  await load(page, { worker: false }, GOLDEN_MODEL)
  await page.evaluate(() => window.model.generate('Who are you?', { maxTokens: 2 }).text())
  expect(requests).toBe(0)
  // So long that no other answer takes its room.
  const prompt = 'Why did the small dog run away from the house? '.repeat(3)
  await page.evaluate(prompt => {
    const answer = window.model.generate(prompt, { responseFormat: /yes|no/ })
    Object.assign(window, { answer })
  }, prompt)
  await expect.poll(() => requests).toBe(1)
  const meanwhile = await page.evaluate(async prompt => {
    const { model } = window
    // This one takes longer than the prompt.
    await model.generate('Who?', { maxTokens: 3 }).text()
    return await model.generate(prompt, { maxTokens: 1 }).stats
  }, prompt)
  expect(meanwhile.reusedTokens).toBe(meanwhile.promptTokens - 1)
  send()
  const { text, stats } = await page.evaluate(async () => {
    const { answer } = window as unknown as { answer: ReturnType<typeof window.model.generate> }
    return { text: await answer.text(), stats: await answer.stats }
  })
  expect(['yes', 'no']).toContain(text)
  expect(requests).toBe(1)
  expect(stats.promptTokens).toBe(meanwhile.promptTokens)
  // The answer is told what the prompt found.
  expect(stats.reusedTokens).toBeLessThan(stats.promptTokens - 1)
  expect(stats.timeToFirstToken).toBeGreaterThan(0)
})

test('a model whose module cannot be fetched says so, and the next answer fetches it', async ({ harness: page }) => {
  await page.route('**/grammar.wasm', route => route.fulfill({ status: 503 }), { times: 1 })
  await load(page, { worker: false }, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const answer = () => window.model.generate('Who are you?', { responseFormat: /yes/ }).text().catch((error: { code: string }) => error.code)
    return [await answer(), await answer()]
  })
  expect(found).toEqual(['network', 'yes'])
})
