// The model's own words: greedy text, tokens and logits, against what other programs computed.
import { readFileSync } from 'node:fs'
import {
  best, bundledGoldens, CLOSE, continuation, expect, expectedIds, GOLDEN_MODEL, goldens,
  goldensInOrder, load, open, RANDOM_MODEL, SMALL_LEAD, test
} from './harness'
import type { Harness } from './harness'
import type { LoadOptions, ModelInfo } from '../../pkg/index.js'

/** A way to run the golden model, and what shows that it was run in this way. */
interface Variant {
  options: LoadOptions
  promptLookup?: boolean
  /** All prompts, unless these are named. */
  prompts?: string[]
  url?: string
  shows(info: ModelInfo, usual: ModelInfo): void
}

const names = ({ kernels }: ModelInfo) => kernels.map(kernel => kernel.split('/')[0])
const usesSubgroups = ({ kernels }: ModelInfo) => kernels.some(kernel => kernel.includes('subgroup'))

/** The kernels of a graphics card, which no adapter of these tests uses by itself. */
const card = (packedDot: boolean, subgroups = true) => ({ gpu: { features: { software: false, packedDot, subgroups } } })
const isCard = (info: ModelInfo) => {
  expect(names(info)).toEqual(expect.arrayContaining(['norm_gemv', 'attention_decode', 'attention_prefill', 'gemm_i2s']))
}

/** The golden model's embedding: 606 rows of 128 values in f16. */
const EMBEDDING = 606 * 128 * 2
/** Enough for the keys of a layer: 1024 positions of 64 values in f16. */
const BINDING = 1024 * 64 * 2

/** Prompts for what shares most of its kernels with another variant, which takes them all. */
const FEW = ['once', 'count', 'follow_up']
/** Prompts whose texts repeat themselves so much that drafts are made however fast the steps are. */
const REPEATS = ['verse', 'count']

/** A card's kernels work on tiles, for which a CPU takes over ten seconds. */
const variants: Record<string, Variant> = {
  'as it comes': { options: {}, shows: info => expect(usesSubgroups(info)).toBe(true) },
  'in this thread': { options: { worker: false }, prompts: FEW, shows: () => {} },
  'without subgroups': {
    options: { gpu: { features: { subgroups: false } } }, shows: info => expect(usesSubgroups(info)).toBe(false)
  },
  'with the kernels of a card, packed products': {
    options: card(true), shows: info => {
      isCard(info)
      expect(usesSubgroups(info)).toBe(true)
    }
  },
  'with the kernels of a card, without packed dot': { options: card(false), prompts: FEW, shows: isCard },
  'with the kernels of a card without subgroups': {
    options: card(true, false), prompts: FEW, shows: info => {
      isCard(info)
      expect(usesSubgroups(info)).toBe(false)
    }
  },
  'with keys and values in f32': {
    options: { kv: 'f32' }, shows: (info, usual) => {
      // Two layers, keys and values of 64 numbers at each of 1024 positions, and two bytes more for
      // each number.
      expect(info.gpuBytes - usual.gpuBytes).toBe(2 * 2 * 64 * 1024 * 2)
      expect([usual.kv, info.kv]).toEqual(['f16', 'f32'])
    }
  },
  'with keys and values in int8': {
    options: { kv: 'int8' }, shows: (info, usual) => {
      // A byte less for each number; but scales, of 16 bytes for the two heads.
      expect(usual.gpuBytes - info.gpuBytes).toBe(2 * 2 * (64 - 16) * 1024)
      expect(info.kv).toBe('int8')
    }
  },
  'with an f16 LM head': {
    options: { lmHead: 'f16' }, prompts: FEW, shows: info => expect(names(info)).toContain('gemv_lm_head')
  },
  'with an int8 LM head': {
    options: { lmHead: 'int8' }, prompts: FEW, shows: info => {
      expect(names(info)).toContain('rescore')
      expect(names(info)).not.toContain('gemv_lm_head')
    }
  },
  'with an embedding in two shards': {
    options: { gpu: { limits: { maxStorageBufferBindingSize: BINDING, maxBufferSize: BINDING } } },
    prompts: FEW,
    shows: (info, usual) => {
      expect(Math.ceil(EMBEDDING / BINDING)).toBe(2)
      // The LM head runs once for each shard.
      expect(info.dispatchesPerToken).toBeGreaterThanOrEqual(usual.dispatchesPerToken + 1)
    }
  },
  'with prompt lookup': { options: {}, promptLookup: true, shows: () => {} },
  'with prompt lookup and the kernels of a card': { options: card(true), promptLookup: true, prompts: REPEATS, shows: isCard },
  'with codes in the order of ARM builds': { options: { i2sLayout: 'arm' }, prompts: FEW, url: '/arm.gguf', shows: () => {} }
}

test.describe('the golden model gives each text to its end', () => {
  let usual: ModelInfo

  for (const [name, { options, promptLookup, prompts, url = GOLDEN_MODEL, shows }] of Object.entries(variants)) {
    test(name, name === 'as it comes' ? { tag: '@quick' } : {}, async ({ shared }) => {
      usual ??= await load(shared, {}, GOLDEN_MODEL)
      shows(await load(shared, options, url), usual)
      let draftPasses = 0
      for (const golden of goldensInOrder.filter(({ name }) => prompts?.includes(name) ?? true)) {
        const found = await continuation(shared, golden, promptLookup)
        expect(found, golden.name).toEqual({
          promptTokens: golden.ids.length,
          finishReason: golden.greedy_stopped ? 'stop' : 'length',
          ids: expectedIds(golden),
          text: golden.greedy_text,
          draftPasses: expect.any(Number)
        })
        draftPasses += found.draftPasses
      }
      if (promptLookup) expect(draftPasses).toBeGreaterThan(0)
    })
  }

  test('and every lead is clear', () => {
    for (const { name, greedy, greedy_margins: leads } of goldens) {
      expect(leads.length, name).toBe(greedy.length)
      expect(Math.min(...leads), name).toBeGreaterThan(0.5)
    }
  })

  test('but another text with codes in another order than the file\'s', async ({ shared }) => {
    await load(shared, {}, '/arm.gguf')
    const golden = goldens.find(({ name }) => name === 'who')!
    expect((await continuation(shared, golden)).text).not.toBe(golden.greedy_text)
  })

  test('and the same logits with an LM head in f16 and in int8, in the same memory', async ({ shared }) => {
    const { ids } = goldens.find(({ name }) => name === 'who')!
    const answers = async (lmHead: 'f16' | 'int8') => {
      const { gpuBytes } = await load(shared, { lmHead }, GOLDEN_MODEL)
      return { gpuBytes, logits: await shared.evaluate(async ids => [...await window.model.logits(Uint32Array.from(ids))], ids) }
    }
    const [f16, int8] = [await answers('f16'), await answers('int8')]
    expect(int8.logits).toEqual(f16.logits)
    expect(int8.gpuBytes - f16.gpuBytes).toBeLessThan(EMBEDDING / 2)
  })
})

test.describe('the bundled model', () => {
  // One page and one load: compiling the kernels takes longer than most of these.
  let own: Harness
  test.beforeAll(async ({ browser }) => {
    own = await open(browser)
    await load(own.page)
  })
  test.afterAll(() => own.close())

  /** An answer that ends, a conversation, and text in all kinds of characters. `@all` has the others. */
  const SOME = ['who', 'follow_up', 'odd_text']

  for (const all of [false, true]) {
    // Over ten seconds: the bundled model has eight layers and long prompts.
    test(`gives ${all ? 'all' : 'some'} golden texts`, all ? { tag: '@all' } : {}, async () => {
      test.setTimeout(600_000)
      const prompts = bundledGoldens.prompts.filter(({ name }) => all || SOME.includes(name))
      expect(prompts.length).toBe(all ? 14 : SOME.length)
      let toTheEnd = 0
      for (const golden of prompts) {
        const found = await continuation(own.page, golden)
        expect(found.promptTokens).toBe(golden.ids.length)
        const expected = expectedIds(golden)
        const differs = expected.findIndex((id, step) => found.ids[step] !== id)
        if (differs === -1) {
          toTheEnd++
          expect(found.ids).toEqual(expected)
          expect(found.text).toBe(golden.greedy_text)
          expect(found.finishReason).toBe(golden.greedy_stopped ? 'stop' : 'length')
        } else {
          const lead = golden.greedy_margins[differs]
          expect(lead, `${golden.name} differs at step ${differs}, where the lead is clear`).toBeLessThan(SMALL_LEAD)
        }
      }
      console.log(`${toTheEnd} of ${prompts.length} golden texts to the end`)
      expect(toTheEnd).toBeGreaterThanOrEqual(prompts.length - (all ? 2 : 1))
    })
  }

  test('has the golden tokens, and takes them back', async () => {
    const found = await own.page.evaluate(async cases => {
      const { model } = window
      const found = []
      for (const { text } of cases) {
        const plain = await model.tokenize(text)
        found.push({
          plain: [...plain],
          special: [...await model.tokenize(text, { special: true })],
          count: await model.countTokens(text),
          back: await model.detokenize(plain)
        })
      }
      return found
    }, bundledGoldens.tokenizer)
    for (const [index, { text, ids, ids_plain: plain = ids }] of bundledGoldens.tokenizer.entries()) {
      expect(found[index], JSON.stringify(text)).toEqual({ plain, special: ids, count: plain.length, back: text })
    }
  })

  test('counts as many tokens in a conversation as its prompt has', async () => {
    for (const { kind, turns, ids } of bundledGoldens.prompts) {
      if (kind === 'raw') continue
      const messages = turns!.map(([role, content]) => ({ role, content }))
      expect(await own.page.evaluate(messages => window.model.countTokens(messages), messages)).toBe(ids.length)
    }
  })

  test('gives the ten best logits of short prompts', async () => {
    // Longer prompts round too many activations to compare value by value; their texts are compared
    // above.
    for (const name of ['bos_only', 'once']) {
      const { ids, last } = bundledGoldens.prompts.find(golden => golden.name === name)!
      const found = await own.page.evaluate(async ids => [...await window.model.logits(Uint32Array.from(ids))], ids)
      expect(best(found), name).toBe(last.ids[0])
      for (const [rank, id] of last.ids.entries()) {
        // Keys and values in f16 change a logit, and so does an activation that rounds the other
        // way.
        expect(Math.abs(found[id]! - last.logits[rank]!), `${name}, token ${id}`).toBeLessThan(SMALL_LEAD)
      }
    }
  })
})

test('logits of the random model agree with bitnet.cpp and with NumPy', async ({ shared }) => {
  const { tokens, n_vocab: width } = JSON.parse(readFileSync('tests/data/tiny/tokens.json', 'utf8'))
  await load(shared, {}, RANDOM_MODEL)
  const found = await shared.evaluate(async tokens => {
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
      expect(Math.max(...row.map((logit, id) => Math.abs(logit - golden[id]!)))).toBeLessThan(CLOSE)
    }
  }
})
