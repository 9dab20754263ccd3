// The lab's figures and pictures without a browser.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { BitNetError } from '../../pkg/index.js'
import { load } from './load.mjs'

const { readContents } = await load('lab/contents.ts')
const { heatMap, MEASURES, within } = await load('lab/heat.ts')
const { colourOf, partOf, pictureOf } = await load('lab/picture.ts')
const { isLight } = await load('shared/colour.ts')
const { figure } = await load('lab/table.ts')
const { fromText, toText } = await load('lab/report.ts')
const { readInspection, reportOf, strongest, surprise, visible } = await load('lab/tokens.ts')
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
  assert.deepEqual([0, 1, -1].map(share => isLight(colourOf(share))), [true, true, false])
  const { width, height, pixels } = pictureOf(Float32Array.of(0, -2, 1, 2, NaN, Infinity), 3)
  assert.deepEqual([width, height], [3, 2])
  assert.deepEqual([...pixels.slice(0, 8)], [247, 247, 247, 255, 33, 102, 172, 255])
  assert.deepEqual([...pixels.slice(16)], [128, 128, 128, 255, 214, 96, 4, 255])
  assert.deepEqual([...pictureOf(Float32Array.of(0, 0), 2).pixels.slice(0, 3)], [247, 247, 247])
  // Between, as the heat map has it.
  assert.deepEqual([...pictureOf(Float32Array.of(-0.4, 1), 2).pixels.slice(0, 3)], colourOf(-0.4))
  // Rows of three, of which the last two columns are seen.
  assert.deepEqual([...partOf(Float32Array.of(1, 2, 3, 4, 5, 6), 3, 1, 2)], [2, 3, 5, 6])
})

test('figures have four digits that count, and whole numbers all', () => {
  assert.deepEqual([87280, 1234567, 0.000123456, 1234.56, -0.5, 0].map(figure), ['87,280', '1,234,567', '0.0001235', '1,235', '-0.5', '0'])
})

test('tokens show what cannot be seen, and their surprise in bits', () => {
  assert.deepEqual([' a b ', 'a\n', '\t', ''].map(visible), ['·a b·', 'a↵\n', '⇥', '∅'])
  assert.equal(surprise({ logprob: -3 * Math.LN2 }), 3)
  assert.equal(Object.is(surprise({ logprob: -0 }), 0), true)
  const weights = Float32Array.of(1, 0, 0, 0.25, 0.75, 0, 0.5, 0.125, 0.375)
  assert.deepEqual(strongest({ weights }, 3, 1), [{ at: 1, weight: 0.75 }, { at: 0, weight: 0.25 }])
  assert.deepEqual(strongest({ weights }, 3, 2, 2).map(({ at }) => at), [0, 2])
})

test('a report is saved and opened again, and nothing else is', () => {
  const inspection = {
    tokens: [{ id: 1, text: 'a', special: false }, { id: 2, text: 'b', special: true, logprob: -Infinity, next: [{ id: 3, text: 'c', logprob: NaN }] }],
    activations: [{ layer: 0, at: 'block', min: 0, max: 1, rms: Infinity, notFinite: 2 }],
    attention: { layer: 0, head: 1, weights: Float32Array.of(1, 0, NaN, 0.25) }
  }
  const text = toText('inspect', reportOf(inspection))
  assert.deepEqual(readInspection(fromText('inspect', text)), inspection)
  const odd = [NaN, Infinity, -Infinity, 0.5]
  assert.deepEqual(fromText('inspect', toText('inspect', { odd, one: NaN, text: 'NaN' })), { odd, one: NaN, text: 'NaN' })
  assert.throws(() => fromText('speed', text), { message: 'This is a report on “inspect”. Open it there.' })
  for (const other of ['', '7', 'null', '[]']) assert.throws(() => fromText('inspect', other), /This file is no report/)
})

/** `content` with another value at `path`. */
const changed = (content, path, value) => {
  const copy = structuredClone(content)
  const names = path.split('.')
  const last = names.pop()
  names.reduce((at, name) => at[name], copy)[last] = value
  return copy
}

/** The content of a report in `tests/data/lab`. */
const fixture = name => JSON.parse(readFileSync(new URL(`../data/lab/${name}.json`, import.meta.url))).content

test('a report is refused if any of its fields is of another kind, with the name of the field', () => {
  const inspection = fixture('inspect')
  const speed = fixture('speed')
  const contents = { name: 'a', architecture: 'b', bytes: 4, tensors: [tensor('blk.0.attn_q.weight', 0, [1, 2, 1], 0.5)] }
  const cases = [
    [readInspection, inspection, 'tokens', undefined], [readInspection, inspection, 'tokens.1.id', '7'],
    [readInspection, inspection, 'tokens.0', null], [readInspection, inspection, 'tokens.1.special', 1],
    [readInspection, inspection, 'tokens.1.logprob', 'x'], [readInspection, inspection, 'tokens.1.next', 5],
    [readInspection, inspection, 'tokens.1.next.0.logprob', undefined], [readInspection, inspection, 'activations', 7],
    [readInspection, inspection, 'activations.1.rms', null], [readInspection, inspection, 'attention', null],
    [readInspection, inspection, 'attention.layer', -1], [readInspection, inspection, 'attention.rows', undefined],
    [readInspection, inspection, 'attention.rows.1.0', 'x'],
    [readSpeed, speed, 'model', 1], [readSpeed, speed, 'points', {}], [readSpeed, speed, 'points.0.decode', 'x'],
    [readSpeed, speed, 'points.2.first', Infinity], [readSpeed, speed, 'memory', 5], [readSpeed, speed, 'memory', []],
    [readSpeed, speed, 'memory.held', undefined], [readSpeed, speed, 'profile', {}], [readSpeed, speed, 'profile.bandwidth', '1'],
    [readSpeed, speed, 'profile.kernels.1.microseconds', NaN],
    [readContents, contents, 'bytes', 0.5], [readContents, contents, 'tensors.0.shape', '2'], [readContents, contents, 'tensors.0.layer', 'x'],
    [readContents, contents, 'tensors.0.found.counts', [1, 2]], [readContents, contents, 'tensors.0.found.scales.mean', null]
  ]
  for (const [read, whole, path, value] of cases) {
    assert.doesNotThrow(() => read(whole))
    const name = path.replace(/\.(\d+)/g, '[$1]')
    assert.throws(() => read(changed(whole, path, value)), ({ message }) => message.startsWith(`This report is damaged: content.${name}`), path)
    assert.throws(() => read(null), { message: 'This report is damaged: content is no object.' })
  }
  for (const rows of [[], [[1], [0.5], [1, 0, 0], [1, 0, 0, 0]]]) {
    assert.throws(() => readInspection(changed(inspection, 'attention.rows', rows)), /a part of its attention/)
  }
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
  assert.deepEqual([found.machine, readSpeed(JSON.parse(JSON.stringify(found)))], ['webgpu', found])

  model.profile = async () => { throw new BitNetError('missing-feature', 'it has no clock') }
  prompts.length = 0
  const without = await measure(model, new AbortController().signal, () => {})
  assert.deepEqual([without.noProfile, without.profile, without.points[0].roof], ['it has no clock', undefined, null])
  await assert.rejects(measure(model, AbortSignal.abort(new Error('enough')), () => {}), { message: 'enough' })

  model.profile = async () => { throw new BitNetError('device-lost', 'it is gone') }
  await assert.rejects(measure(model, new AbortController().signal, () => {}), { code: 'device-lost' })
  const stop = new AbortController()
  model.profile = () => new Promise(() => setTimeout(() => stop.abort(new Error('enough'))))
  await assert.rejects(measure(model, stop.signal, () => {}), { message: 'enough' })
})
