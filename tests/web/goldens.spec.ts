// The model's own words: greedy text, tokenizer, logits, against what other programs computed.
import { readFileSync } from 'node:fs'
import { expect, goldens, load, RANDOM_MODEL, SMALL_LEAD, test } from './harness'
import type { Golden } from './harness'

const SHARDED = { gpu: { limits: { maxStorageBufferBindingSize: 1_400_000 } } }

/** The page's greedy continuation of a golden prompt, as tokens. */
const continuation = (page: import('@playwright/test').Page, golden: Golden, maxTokens: number) =>
  page.evaluate(async ([{ kind, turns, text, ids }, maxTokens]) => {
    const { model } = window
    const input = kind === 'raw' ? text : turns!.map(([role, content]) => ({ role, content }))
    const options = kind === 'raw' ? { raw: true, special: true } : {}
    const generation = model.generate(input, { ...options, maxTokens })
    const tokens = []
    for await (const token of generation.tokens()) tokens.push(token)
    const stats = await generation.stats
    return {
      promptTokens: stats.promptTokens,
      finishReason: stats.finishReason,
      ids: tokens.flatMap(token => token.id ?? []),
      text: tokens.map(token => token.text).join(''),
      prompt: ids
    }
  }, [golden, maxTokens] as const)

const agrees = (golden: Golden, found: Awaited<ReturnType<typeof continuation>>) => {
  expect(found.promptTokens).toBe(golden.ids.length)
  // The golden list ends with the stop token, which a generation does not give.
  const expected = golden.greedy_stopped ? golden.greedy.slice(0, -1) : golden.greedy
  const differs = expected.findIndex((id, step) => found.ids[step] !== id)
  if (differs === -1) {
    expect(found.ids).toEqual(expected)
    expect(found.text).toBe(golden.greedy_text)
    expect(found.finishReason).toBe(golden.greedy_stopped ? 'stop' : 'length')
  } else {
    expect(golden.greedy_margins[differs], `${golden.name} differs at step ${differs}, where the lead is clear`).toBeLessThan(SMALL_LEAD)
  }
}

test('the greedy text of every prompt is the golden one', async ({ harness }) => {
  test.setTimeout(1_200_000)
  await load(harness)
  for (const golden of goldens.prompts) {
    await test.step(golden.name, async () => agrees(golden, await continuation(harness, golden, golden.greedy.length)))
  }
})

/** The kernels of a graphics card, which no adapter of the tests uses by itself. */
const AS_A_CARD = { gpu: { features: { software: false, packedDot: true } } }

test('the greedy text is the same with the kernels of a card', async ({ harness }) => {
  test.setTimeout(900_000) // a CPU adapter makes machine code of each, and is slow with them
  const { kernels } = await load(harness, AS_A_CARD)
  for (const name of ['norm_gemv', 'attention_decode', 'attention_prefill', 'gemm_i2s']) {
    expect(kernels.map(kernel => kernel.split('/')[0])).toContain(name)
  }
  const golden = goldens.prompts[0]!
  const found = await continuation(harness, golden, 24)
  expect(found.ids).toEqual(golden.greedy.slice(0, 24))
})

for (const [name, options] of [['an embedding in three shards', SHARDED], ['no subgroups', { gpu: { features: { subgroups: false } } }]] as const) {
  test(`the greedy text is the same with ${name}`, async ({ harness }) => {
    const usual = await load(harness)
    const info = await load(harness, options)
    if (options === SHARDED) {
      const embedding = 4096 * 512 * 2
      expect(embedding).toBeGreaterThan(2 * SHARDED.gpu.limits.maxStorageBufferBindingSize)
      // The head runs once for each of its shards.
      expect(info.dispatchesPerToken).toBeGreaterThanOrEqual(usual.dispatchesPerToken + 2)
    } else {
      expect(usual.kernels.filter(kernel => kernel.includes('subgroup'))).not.toEqual([])
      expect(info.kernels.filter(kernel => kernel.includes('subgroup'))).toEqual([])
    }
    const golden = goldens.prompts.find(({ name }) => name === 'who')!
    agrees(golden, await continuation(harness, golden, golden.greedy.length))
  })
}

test('the greedy text and the logits are the same with an int8 head', async ({ harness }) => {
  const golden = goldens.prompts.find(({ name }) => name === 'who')!
  const answers = async (head: 'f16' | 'int8') => {
    const { kernels, gpuBytes } = await load(harness, { head })
    const { ids, text } = await continuation(harness, golden, golden.greedy.length)
    const logits = await harness.evaluate(async ids => [...await window.model.logits(Uint32Array.from(ids))], golden.ids)
    return { kernels: kernels.map(kernel => kernel.split('/')[0]), gpuBytes, ids, text, logits }
  }
  const f16 = await answers('f16')
  expect(f16.kernels).toContain('gemv_head')
  const int8 = await answers('int8')
  expect(int8.kernels).toContain('rescore')
  expect(int8.kernels).not.toContain('gemv_head')
  expect(int8.text).toBe(f16.text)
  expect(int8.ids).toEqual(f16.ids)
  expect(int8.logits).toEqual(f16.logits)
  // The embedding of 4 MiB is held once.
  expect(int8.gpuBytes - f16.gpuBytes).toBeLessThan(64 << 10)
})

test('the tokenizer gives the golden tokens and takes them back', async ({ harness }) => {
  await load(harness)
  const found = await harness.evaluate(async cases => {
    const found = []
    for (const { text } of cases) {
      const plain = await window.model.tokenize(text)
      found.push({
        plain: [...plain],
        special: [...await window.model.tokenize(text, { special: true })],
        count: await window.model.countTokens(text),
        back: await window.model.detokenize(plain)
      })
    }
    return found
  }, goldens.tokenizer)
  for (const [index, { text, ids, ids_plain: plain = ids }] of goldens.tokenizer.entries()) {
    expect(found[index], JSON.stringify(text)).toEqual({ plain, special: ids, count: plain.length, back: text })
  }
})

test('a conversation counts as many tokens as its prompt has', async ({ harness }) => {
  await load(harness)
  for (const { kind, turns, ids } of goldens.prompts) {
    if (kind === 'raw') continue
    const count = await harness.evaluate(turns => window.model.countTokens(turns.map(([role, content]) => ({ role, content }))), turns!)
    expect(count).toBe(ids.length)
  }
})

test('logits of the random model agree with bitnet.cpp and with an independent model', async ({ harness }) => {
  const { tokens, n_vocab: width } = JSON.parse(readFileSync('tests/data/tiny/tokens.json', 'utf8'))
  await load(harness, {}, RANDOM_MODEL)
  const found = await harness.evaluate(async tokens => {
    const rows = []
    for (let length = 1; length <= tokens.length; length++) {
      rows.push([...await window.model.logits(Uint32Array.from(tokens.slice(0, length)))])
    }
    return rows
  }, tokens as number[])
  for (const name of ['bitnetcpp', 'numpy']) {
    const bytes = readFileSync(`tests/data/tiny/tiny-bitnet-b1.58.${name}.f32`)
    const expected = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    for (const [position, row] of found.entries()) {
      const golden = [...expected.subarray(position * width, (position + 1) * width)]
      expect(row.length).toBe(width)
      expect(best(row), `${name}, position ${position}`).toBe(best(golden))
      // One activation that rounds the other way to int8 moves a logit by 0.2.
      expect(Math.max(...row.map((logit, id) => Math.abs(logit - golden[id]!)))).toBeLessThan(1)
    }
  }
})

test('the ten best logits of short prompts are the golden ones', async ({ harness }) => {
  await load(harness)
  // Longer prompts round too many activations to compare value by value; their texts are compared above.
  for (const name of ['bos_only', 'once']) {
    const { ids, last } = goldens.prompts.find(golden => golden.name === name)!
    const found = await harness.evaluate(async ids => [...await window.model.logits(Uint32Array.from(ids))], ids)
    expect(best(found), name).toBe(last.ids[0])
    for (const [rank, id] of last.ids.entries()) {
      // What keys and values in f16 change, and an activation that rounds the other way.
      expect(Math.abs(found[id]! - last.logits[rank]!), `${name}, token ${id}`).toBeLessThan(SMALL_LEAD)
    }
  }
})

const best = (logits: number[]) => logits.indexOf(Math.max(...logits))
