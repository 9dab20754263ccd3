// The lab's figures and pictures without a browser.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from './load.mjs'

const { heatMap, MEASURES, within } = await load('lab/heat.ts')
const { colourOf, isLight, partOf, pictureOf } = await load('lab/picture.ts')
const { figure } = await load('lab/table.ts')
const { fromText, toText } = await load('lab/report.ts')
const { readInspection, shown, strongest, surprise } = await load('lab/tokens.ts')
const { lengths, measure, median, readSpeed, roofOf } = await load('lab/measure.ts')

const tensor = (name, layer, counts, scale) => ({
  name, layer, type: 'TQ2_0', shape: [2, 2], bytes: 4,
  found: counts && { counts, entropy: 1, scales: { count: 1, min: scale, max: scale, mean: scale } }
})

test('a heat map has a row for each role and a column for each layer', () => {
  const tensors = [
    tensor('token_embd.weight', undefined, [1, 1, 2], 9),
    tensor('blk.10.attn_q.weight', 10, [1, 2, 1], 0.5), tensor('blk.2.attn_q.weight', 2, [1, 0, 3], 2),
    tensor('blk.2.ffn_up.weight', 2, [0, 3, 1], 1), tensor('blk.10.ffn_up.weight', 10), tensor('blk.2.attn_norm.weight', 2)
  ]
  const [zero, , , , scale] = MEASURES
  assert.deepEqual(heatMap(tensors, zero), {
    layers: [2, 10],
    rows: [{ role: 'attn_q', values: [0, 0.5] }, { role: 'ffn_up', values: [0.75, undefined] }],
    range: [0, 0.75]
  })
  assert.deepEqual(heatMap(tensors, scale).range, [0.5, 2])
  assert.deepEqual(heatMap([], zero), { layers: [], rows: [], range: [0, 0] })
  assert.deepEqual([within(3, [1, 5]), within(1, [1, 1])], [0.5, 0])
})

test('pictures colour values by their size', () => {
  assert.deepEqual([colourOf(0), colourOf(-1), colourOf(1), colourOf(NaN)], [[247, 247, 247], [33, 102, 172], [214, 96, 4], [128, 128, 128]])
  assert.deepEqual([isLight(0), isLight(1), isLight(-1)], [true, true, false])
  const { width, height, pixels } = pictureOf(Float32Array.of(0, -2, 1, 2, NaN, Infinity), 3)
  assert.deepEqual([width, height], [3, 2])
  assert.deepEqual([...pixels.slice(0, 8)], [247, 247, 247, 255, 33, 102, 172, 255])
  assert.deepEqual([...pixels.slice(16)], [128, 128, 128, 255, 214, 96, 4, 255])
  assert.deepEqual([...pictureOf(Float32Array.of(0, 0), 2).pixels.slice(0, 3)], [247, 247, 247])
  // Rows of three, of which the last two columns are seen.
  assert.deepEqual([...partOf(Float32Array.of(1, 2, 3, 4, 5, 6), 3, 1, 2)], [2, 3, 5, 6])
})

test('figures have four digits that count, and whole numbers all', () => {
  assert.deepEqual([87280, 1234567, 0.000123456, 1234.56, -0.5, 0].map(figure), ['87,280', '1,234,567', '0.0001235', '1,235', '-0.5', '0'])
})

test('tokens show what cannot be seen, and their surprise in bits', () => {
  assert.deepEqual([' a b ', 'a\n', '\t', ''].map(shown), ['·a b·', 'a↵\n', '⇥', '∅'])
  assert.equal(surprise({ logprob: -3 * Math.LN2 }), 3)
  assert.equal(Object.is(surprise({ logprob: -0 }), 0), true)
  const weights = Float32Array.of(1, 0, 0, 0.25, 0.75, 0, 0.5, 0.125, 0.375)
  assert.deepEqual(strongest({ weights }, 3, 1), [{ at: 1, weight: 0.75 }, { at: 0, weight: 0.25 }])
  assert.deepEqual(strongest({ weights }, 3, 2, 2).map(({ at }) => at), [0, 2])
})

test('a report is saved and opened again, and nothing else is', () => {
  const inspection = {
    tokens: [{ id: 1, text: 'a', special: false }], attention: { layer: 0, head: 1, weights: Float32Array.of(1) }
  }
  const text = toText('inspect', inspection)
  assert.deepEqual(readInspection(fromText('inspect', text)), inspection)
  const odd = [NaN, Infinity, -Infinity, 0.5]
  assert.deepEqual(fromText('inspect', toText('inspect', { odd: Float32Array.from(odd), one: NaN, text: 'NaN' })), { odd, one: NaN, text: 'NaN' })
  assert.throws(() => fromText('speed', text), { message: 'This is a report on “inspect”. Open it there.' })
  for (const other of ['', '7', 'null', '[]']) assert.throws(() => fromText('inspect', other), /This file is no report/)
  assert.throws(() => readInspection({ ...inspection, attention: { weights: [] } }), /its attention/)
  assert.throws(() => readInspection({ tokens: [{}] }), /its tokens/)
  assert.throws(() => readSpeed({ points: [{ context: 1 }], memory: {} }), /its figures/)
  assert.throws(() => readSpeed({ points: [] }), /its figures/)
})

test('a measurement has the median of its runs, and the roof of the memory', async () => {
  assert.deepEqual([lengths(300), lengths(10)], [[16, 64, 256], []])
  assert.equal(median([9, 1, 5]), 5)
  const info = { name: 'm', adapter: '', backend: 'webgpu', bytes: 1, gpuBytes: 2, kvBytes: 1, cacheBytes: 1000, contextLength: 100, bytesPerToken: 400 }
  // 400 bytes and 10 for each of 60 tokens.
  assert.equal(roofOf({ token: 400, cache: 1000, contextLength: 100 }, 5, 60), 5e6)
  const prompts = []
  const times = [7, 3, 1, 2, 50, 10, 40, 30]
  const model = {
    info,
    tokenize: async text => Uint32Array.from({ length: text.split(' ').length }, (_, n) => n),
    generate(ids, options) {
      prompts.push(ids)
      assert.equal(options.promptLookup, false)
      const timeToFirstToken = times[prompts.length - 1]
      return { stats: Promise.resolve({ timeToFirstToken, decodeTokensPerSecond: prompts.length < 5 ? 0 : 10 * timeToFirstToken }) }
    },
    profile: async () => ({ bandwidth: 2, kernels: [] })
  }
  const shares = []
  const found = await measure(model, new AbortController().signal, share => shares.push(share))
  // The first run of each length is not counted.
  assert.deepEqual(found.points, [
    { context: 16, decode: null, first: 2, roof: 2e9 / 560 }, { context: 64, decode: 300, first: 30, roof: 2e9 / 1040 }
  ])
  assert.equal(shares.at(-1), 1)
  assert.deepEqual(prompts.map(({ length }) => length), [16, 16, 16, 16, 64, 64, 64, 64])
  assert.equal(new Set(prompts.map(([first]) => first)).size, 8)
  assert.deepEqual([found.adapter, readSpeed(JSON.parse(JSON.stringify(found)))], ['webgpu', found])

  model.profile = async () => { throw new Error('it has no clock') }
  prompts.length = 0
  const without = await measure(model, new AbortController().signal, () => {})
  assert.deepEqual([without.noProfile, without.profile, without.points[0].roof], ['it has no clock', undefined, null])
  await assert.rejects(measure(model, AbortSignal.abort(new Error('enough')), () => {}), { message: 'enough' })
})
