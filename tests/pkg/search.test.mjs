// `tritloom/search` without a browser: an index in memory, of a model whose vectors are made of a text's words. IndexedDB
// and a real model are in tests/web/search.spec.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const load = name => import(new URL(`../../pkg/${name}.js`, import.meta.url))
const { createIndex } = await load('search')
const { MemoryStorage } = await load('search/memory')
const { SearchIndex, settingsOf } = await load('search/search-index')
const { BitNetError } = await load('error')

/** Numbers between -1 and 1 that depend on a seed, by xorshift. */
const numbers = seed => {
  let state = seed | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state / 2 ** 31
  }
}

const hash = word => [...word].reduce((sum, char) => Math.imul(sum ^ char.codePointAt(0), 0x01000193), 0x811c9dc5)

const normal = values => {
  const length = Math.hypot(...values)
  return Float32Array.from(values, value => value / length)
}

const wordsOf = text => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/**
 * A model that says of a text which words it has. No multiple of 16 values, which a row is filled up to. `asked` has the
 * texts of all calls, but for those by which an index knows its model.
 */
const modelOf = ({ seed = 0, dimensions = 40, contextLength = 4096, pooling = 'mean', embeds = true } = {}) => {
  const known = new Map()
  const ofWord = word => {
    if (!known.has(word)) known.set(word, Array.from({ length: dimensions }, numbers(hash(word) + seed)))
    return known.get(word)
  }
  const model = {
    info: { name: 'words', architecture: 'qwen3', parameters: 7, bytes: 9, contextLength, pooling, embeds },
    asked: [],
    options: [],
    countTokens: async text => text.length
  }
  model.embed = async (texts, options) => {
    const { signal, onProgress, dimensions: kept = dimensions } = options
    signal?.throwIfAborted()
    await new Promise(setImmediate)
    signal?.throwIfAborted()
    if (!texts[0].startsWith('The lamp beside')) {
      model.asked.push(...texts)
      model.options.push(options)
    }
    onProgress?.({ done: texts.length, total: texts.length })
    return texts.map(text => {
      const sum = new Array(dimensions).fill(1e-3)
      for (const word of wordsOf(text)) ofWord(word).forEach((value, n) => { sum[n] += value })
      return normal(sum.slice(0, kept))
    })
  }
  return model
}

/** An index in `storage`, which may have one. */
const open = (storage, model = modelOf(), options = {}) => SearchIndex.open(model, settingsOf(model, options), storage)

const TEXTS = [
  { id: 'lamp', text: 'The lamp is broken.', metadata: { kind: 'light' } },
  { id: 'parcel', text: 'The parcel came late.', metadata: { kind: 'post' } },
  { id: 'letter', text: 'The letter came early.', metadata: { kind: 'post' } }
]

const filled = async (storage = new MemoryStorage(), model = modelOf()) => {
  const index = await open(storage, model)
  await index.addMany(TEXTS)
  return { index, storage, model }
}

const idsOf = found => found.map(({ id }) => id)

test('texts are found with their metadata, those that are closest first', async () => {
  const model = modelOf()
  const index = await createIndex(model, { storage: 'memory' })
  assert.deepEqual(await index.search('A lamp?'), [])
  await index.addMany(TEXTS)
  await index.add('none', 'Neither word of those.')
  assert.deepEqual([index.size, index.passages, index.ids(), index.has('lamp')], [4, 4, ['lamp', 'parcel', 'letter', 'none'], true])

  const [first, ...others] = await index.search('The parcel came late.')
  assert.ok(Math.abs(first.score - 1) < 1e-5)
  assert.deepEqual({ ...first, score: 1 }, { id: 'parcel', metadata: { kind: 'post' }, text: 'The parcel came late.', passage: 0, score: 1 })
  assert.deepEqual(idsOf(others), ['letter', 'lamp', 'none'])
  assert.equal(others.at(-1).metadata, undefined)
  assert.ok(others.every(({ score }, n) => score <= [first, ...others][n].score))
  assert.deepEqual(idsOf(await index.search('lamp parcel late', { k: 1 })), ['parcel'])
  const asked = []
  const filter = (metadata, id) => asked.push(id) && metadata?.kind === 'post'
  const wanted = idsOf(await index.search('lamp')).filter(id => id === 'parcel' || id === 'letter')
  assert.deepEqual(idsOf(await index.search('lamp', { filter })), wanted)
  assert.deepEqual(idsOf(await index.search('lamp', { filter, k: 1 })), wanted.slice(0, 1))
  assert.deepEqual(asked, [...index.ids(), ...index.ids()])
})

test('queries are told apart from documents, as the model was trained', async () => {
  for (const [facts, options, purpose] of [
    [{}, {}, { task: 'query' }], [{ embeds: false }, {}, { task: 'document' }],
    [{}, { instruction: 'Find it.' }, { instruction: 'Find it.' }]
  ]) {
    const model = modelOf(facts)
    const index = await createIndex(model, { storage: 'memory', pooling: 'last', dimensions: 24, ...options })
    await index.add('a', 'A text.')
    await index.search('text')
    const [{ onProgress, ...document }, query] = model.options
    assert.deepEqual([document, query], [{ pooling: 'last', dimensions: 24 }, { pooling: 'last', dimensions: 24, ...purpose }])
  }
})

/** The best by their own vectors. */
const bestOf = (vectors, query, k) => vectors
  .map((vector, n) => ({ n, score: vector.reduce((sum, value, i) => sum + value * query[i], 0) }))
  .sort((a, b) => b.score - a.score || a.n - b.n)
  .slice(0, k)

test('a search finds what the vectors as they are would give, also among almost equal ones', async () => {
  const next = numbers(5)
  const dimensions = 72
  const random = () => normal(Array.from({ length: dimensions }, next))
  const centre = random()
  // Half of them are so close to one another that their codes are almost the same.
  const vectors = Array.from({ length: 1500 }, (_, n) =>
    n % 2 ? random() : normal(Array.from(centre, value => value + 2e-4 * next())))
  const queries = [centre, ...Array.from({ length: 20 }, random)]
  const of = new Map([...vectors, ...queries].map((vector, n) => [n < vectors.length ? `${n}.` : `q${n - vectors.length}`, vector]))
  const model = modelOf({ dimensions })
  const words = model.embed
  model.embed = async (texts, options) => of.has(texts[0]) ? texts.map(text => of.get(text)) : words(texts, options)
  const storage = new MemoryStorage()
  const index = await open(storage, model)
  await index.addMany(vectors.map((_, n) => ({ id: String(n), text: `${n}.` })))
  let read = 0
  const passages = storage.passages.bind(storage)
  storage.passages = slots => {
    read += slots.length
    return passages(slots)
  }
  for (const [n, query] of queries.entries()) {
    const found = await index.search(`q${n}`, { k: 7 })
    const best = bestOf(vectors, query, 7)
    assert.deepEqual(idsOf(found), best.map(({ n }) => String(n)))
    found.forEach(({ score }, i) => assert.ok(Math.abs(score - best[i].score) < 1e-6))
  }
  // It does not read them all.
  assert.ok(read < queries.length * 0.6 * vectors.length, `${read} were read`)
  const all = await index.search('q3', { k: 5000 })
  assert.equal(all.length, vectors.length)
})

test('passages end at sentences, and fit into the context', async () => {
  const model = modelOf({ contextLength: 72 })
  const index = await open(new MemoryStorage(), model, { passageLength: 100 })
  const sentences = Array.from({ length: 40 }, (_, n) => `Sentence ${n} says that Dr. Jones is here.`)
  await index.add('long', sentences.join(' '), 7)
  assert.ok(model.asked.length > 10)
  for (const passage of model.asked) {
    assert.match(passage, /^Sentence \d+ .* here\.$/)
    assert.ok(passage.length <= 64, passage)
  }
  assert.equal(model.asked.join(' '), sentences.join(' '))
  const found = await index.search('sentence 17', { k: 100 })
  assert.deepEqual(found.map(({ passage, text }) => model.asked[passage] === text), found.map(() => true))
  assert.deepEqual(new Set(found.map(({ metadata }) => metadata)), new Set([7]))
  assert.match(found[0].text, /Sentence 17 /)
  // A text of white space has no passage, but is there.
  await index.add('blank', ' \n ')
  assert.deepEqual([index.size, index.passages], [2, model.asked.length - 1])
})

test('a text with the id of another replaces it, and the same text is not embedded again', async () => {
  const { index, model, storage } = await filled()
  const metadata = { kind: 'light', seen: new Date(0) }
  await index.add('lamp', TEXTS[0].text, metadata)
  metadata.kind = 'changed by the caller'
  assert.equal(model.asked.length, 3)
  const [{ metadata: kept }] = await index.search('lamp', { k: 1 })
  assert.deepEqual(kept, { kind: 'light', seen: new Date(0) })
  kept.kind = 'changed by the finder'
  assert.equal((await index.search('lamp', { k: 1 }))[0].metadata.kind, 'light')

  await index.addMany([{ id: 'lamp', text: 'A ferry.' }, { id: 'lamp', text: 'The ferry is late. It is winter.' }])
  assert.deepEqual([index.size, index.passages], [3, 3])
  assert.equal((await index.search('ferry', { k: 1 }))[0].text, 'The ferry is late. It is winter.')
  await index.remove(['lamp', 'never there'])
  await index.remove('parcel')
  assert.deepEqual(index.ids(), ['letter'])
  assert.deepEqual(idsOf(await index.search('lamp ferry parcel')), ['letter'])
  assert.deepEqual([...storage.stored.values()].map(({ id }) => id), ['letter'])
  // Room that became free is used again.
  await index.addMany(TEXTS)
  assert.equal(Math.max(...storage.stored.keys()) < 4, true)
  await index.clear()
  assert.deepEqual([index.size, index.passages, storage.stored.size, storage.documents.size], [0, 0, 0, 0])
  assert.deepEqual(await index.search('lamp'), [])
})

test('an index is the same when it is opened again', async () => {
  const { index, storage, model } = await filled()
  const found = await index.search('a late letter')
  const { edition } = storage.about
  const begun = index.search('lamp')
  await index.close()
  await assert.rejects(begun, { code: 'disposed' })
  await assert.rejects(index.search('lamp'), { code: 'disposed' })
  await assert.rejects(index.add('a', 'b'), { code: 'disposed' })
  const again = await open(storage, model)
  assert.deepEqual(await again.search('a late letter'), found)
  assert.equal(storage.about.edition, edition)
  await again.add('more', 'More.')
  assert.equal(again.size, 4)
})

test('an index of another model is refused, and stays as it is', async () => {
  const { storage } = await filled()
  const other = facts => {
    const model = modelOf()
    Object.assign(model.info, facts)
    return model
  }
  for (const [model, said, options] of [
    [modelOf({ seed: 1 }), /other weights/],
    [modelOf({ pooling: 'last' }), /pooling is mean, and not last/],
    [modelOf(), /pooling is mean, and not cls/, { pooling: 'cls' }],
    [modelOf(), /number of dimensions is 40, and not 8/, { dimensions: 8 }],
    [other({ name: 'names' }), /model's name is words, and not names/],
    [other({ architecture: 'llama' }), /architecture/], [other({ parameters: 8 }), /parameters/], [other({ bytes: 8 }), /bytes/]
  ]) {
    await assert.rejects(open(storage, model, options), error => {
      assert.ok(error instanceof BitNetError)
      assert.equal(error.code, 'index-mismatch')
      return said.test(error.message)
    })
  }
  // Another machine rounds otherwise.
  const rounding = modelOf()
  const { embed } = rounding
  rounding.embed = async (...args) => (await embed(...args)).map(vector => normal(vector.map((value, n) => value + (n % 3 - 1) * 0.01)))
  assert.equal((await open(storage, rounding)).size, 3)
})

test('an index is of the adapters that were applied when it was made', async () => {
  const { storage, index, model } = await filled()
  const mismatch = { code: 'index-mismatch', message: /adapters/ }
  model.adaptersHash = 'a1'
  await assert.rejects(index.search('lamp'), mismatch)
  await assert.rejects(index.add('more', 'More.'), mismatch)
  await assert.rejects(open(storage, model), mismatch)
  assert.equal((await open(new MemoryStorage(), model)).size, 0)
  model.adaptersHash = ''
  await index.add('more', 'More.')
  assert.equal((await open(storage, model)).size, 4)
})

test('a damaged storage is an error, on opening it or when the damage is met', async () => {
  const first = map => map.values().next().value
  const onOpen = {
    'its facts': ({ about }) => { about.model = undefined },
    'its layout': ({ about }) => { about.layout = 9 },
    'its edition': ({ about }) => { about.edition = 'two' },
    'a probe': ({ about }) => { about.probes[1] = [1] },
    'its facts are missing': storage => { storage.about = undefined },
    'a code': ({ blocks }) => { first(blocks).codes[5] ^= 1 },
    'a scale': ({ blocks }) => { first(blocks).scales[1] *= 2 },
    'an error': ({ blocks }) => { first(blocks).errors[1] = 0 },
    'a block of another form': ({ blocks }) => { first(blocks).codes = new Int8Array(16) },
    'a block is missing': ({ blocks }) => blocks.delete(0),
    'a field of a block': ({ blocks }) => { delete first(blocks).scales },
    'a slot': ({ documents }) => { first(documents).slots = [77] },
    'a slot that is none': ({ documents }) => { first(documents).slots = ['x'] },
    'two texts with a slot': ({ documents }) => { documents.get('lamp').slots = documents.get('letter').slots },
    'a text with a slot twice': ({ documents }) => { documents.get('lamp').slots = [0, 0] },
    'no slots': ({ documents }) => { delete documents.get('lamp').slots }
  }
  const onSearch = {
    'a passage is missing': ({ stored }) => stored.delete(1),
    'a vector': ({ stored }) => { stored.get(1).vector[3] += 0.5 },
    'a vector of another form': ({ stored }) => { stored.get(1).vector = stored.get(1).vector.slice(1) },
    'no text': ({ stored }) => { stored.get(1).text = undefined },
    'another owner': ({ stored }) => { stored.get(1).id = 'lamp' }
  }
  const damagedBy = async damage => {
    const { storage } = await filled()
    damage(storage)
    return storage
  }
  for (const [what, damage] of Object.entries(onOpen)) {
    await assert.rejects(open(await damagedBy(damage)), { name: 'BitNetError', code: 'index-damaged' }, what)
  }
  for (const [what, damage] of Object.entries(onSearch)) {
    const index = await open(await damagedBy(damage))
    await assert.rejects(index.search('parcel'), { name: 'BitNetError', code: 'index-damaged' }, what)
    // Replacing the text mends it.
    await index.remove('parcel')
    await index.add('parcel', TEXTS[1].text)
    assert.equal((await index.search('parcel', { k: 1 }))[0].id, 'parcel', what)
  }
})

// Some seconds: the texts are many.
test('an abort in the middle of a hundred thousand texts leaves the index whole', async () => {
  const TOTAL = 100_000
  const model = modelOf({ dimensions: 16 })
  const storage = new MemoryStorage()
  const index = await open(storage, model)
  const textOf = n => ({ id: `t${n}`, text: `word${n % 997} and number${n}`, metadata: n })
  function* texts() { for (let n = 0; n < TOTAL; n++) yield textOf(n) }
  const stop = new AbortController()
  let last
  const onProgress = progress => {
    last = progress
    if (progress.done > TOTAL / 2) stop.abort(new Error('enough'))
  }
  await assert.rejects(index.addMany(texts(), { signal: stop.signal, onProgress }), { message: 'enough' })
  assert.equal(index.size, last.done)
  assert.ok(last.done > TOTAL / 2 && last.done < 0.6 * TOTAL)

  const again = await open(storage, model)
  assert.deepEqual([again.size, again.passages, storage.stored.size], [last.done, last.done, last.done])
  assert.deepEqual(again.ids(), Array.from({ length: last.done }, (_, n) => `t${n}`))
  const [found] = await again.search('word5 and number5', { k: 1 })
  assert.deepEqual([found.id, found.metadata], ['t5', 5])
  // The same call goes on where it ended.
  const asked = model.asked.length
  await again.addMany(texts(), { onProgress: progress => { last = progress } })
  assert.deepEqual(last, { done: TOTAL, unchanged: index.size, passages: TOTAL - index.size })
  assert.deepEqual([again.size, model.asked.length - asked], [TOTAL, TOTAL - index.size])
  assert.equal((await again.search(`word${99_999 % 997} and number99999`, { k: 1 }))[0].id, 't99999')
})

test('two pages change the same index at once, and nothing is lost', async () => {
  const { index, storage, model } = await filled()
  const other = await open(storage, modelOf())
  const some = (name, count) => Array.from({ length: count }, (_, n) => ({ id: `${name}${n}`, text: `${name} number ${n}.` }))
  await Promise.all([index.addMany(some('red', 600)), other.addMany(some('blue', 600)), other.remove('lamp')])
  const fresh = await open(storage, modelOf())
  assert.equal(fresh.size, 1202)
  for (const one of [index, other, fresh]) {
    assert.deepEqual(idsOf(await one.search('red number 17.', { k: 1 })), ['red17'])
    assert.deepEqual(idsOf(await one.search('blue number 590.', { k: 1 })), ['blue590'])
    assert.deepEqual([one.size, one.has('lamp')], [1202, false])
  }
  // A text that was to stay, and that the other page removes meanwhile.
  const { embed } = model
  model.embed = async (...args) => {
    if (args[0].includes('New.')) await other.remove('parcel')
    return embed(...args)
  }
  await index.addMany([TEXTS[1], { id: 'new', text: 'New.' }])
  assert.equal((await index.search('parcel', { k: 1 }))[0].id, 'parcel')
  // And that the other page replaces while this one searches.
  model.embed = async (...args) => {
    await other.add('parcel', 'The ferry is slow.')
    return embed(...args)
  }
  assert.equal((await index.search('slow ferry', { k: 1 }))[0].text, 'The ferry is slow.')
})

test('a failure to store, and one of the model, leave the index as it was', async () => {
  const { index, storage, model } = await filled()
  const { write } = storage
  storage.write = () => Promise.reject(new BitNetError('storage-full', 'full'))
  await assert.rejects(index.add('more', 'More of it.'), { code: 'storage-full' })
  await assert.rejects(index.remove('lamp'), { code: 'storage-full' })
  storage.write = write
  const { embed } = model
  model.embed = () => Promise.reject(new BitNetError('device-lost', 'lost'))
  await assert.rejects(index.add('more', 'More of it.'), { code: 'device-lost' })
  model.embed = async texts => texts.map(() => new Float32Array(40))
  await assert.rejects(index.add('more', 'More of it.'), { code: 'internal' })
  model.embed = embed
  assert.deepEqual(index.ids(), ['lamp', 'parcel', 'letter'])
  assert.equal((await index.search('lamp', { k: 1 }))[0].id, 'lamp')
  await index.add('more', 'More of it.')
  assert.equal(index.size, 4)
  const failing = index.search('lamp', { filter: () => { throw new RangeError('of the filter') } })
  await assert.rejects(failing, { name: 'RangeError', message: 'of the filter' })
})

test('what is wrong is refused, and named', async () => {
  const memory = { storage: 'memory' }
  const refused = name => ({ name: 'BitNetError', code: 'bad-option', message: new RegExp(`\`${name}`) })
  for (const [name, options] of [
    ['options', null], ['nmae', { nmae: 'a' }], ['name', { name: 7 }], ['storage', { storage: 'disk' }],
    ['dimensions', { ...memory, dimensions: 1.5 }], ['instruction', { ...memory, instruction: 7 }],
    ['passageLength', { ...memory, passageLength: 63 }], ['passageLength', { ...memory, passageLength: 1e6 }]
  ]) await assert.rejects(createIndex(modelOf(), options), refused(name))
  await assert.rejects(createIndex({}, memory), refused('model'))
  await assert.rejects(createIndex(undefined, memory), refused('model'))
  const silent = modelOf()
  delete silent.info.pooling
  await assert.rejects(createIndex(silent, memory), refused('pooling'))
  await assert.rejects(createIndex(modelOf()), { code: 'storage', message: /no IndexedDB here/ })

  const { index } = await filled()
  for (const [name, query, options] of [
    ['query', 7], ['query', ' '], ['k', 'a', { k: 0 }], ['k', 'a', { k: 1.5 }], ['filter', 'a', { filter: 'x' }],
    ['signal', 'a', { signal: 1 }], ['limit', 'a', { limit: 1 }], ['options', 'a', null]
  ]) await assert.rejects(index.search(query, options), refused(name))
  const text = { id: 'a', text: 'b' }
  for (const [name, texts, options] of [
    ['texts', 'abc'], ['texts', undefined], ['texts', 7], ['texts\\[1\\].id', [text, { text: 'b' }]], ['texts\\[0\\].text', [{ id: 'a' }]],
    ['texts\\[0\\].id', [null]], ['texts\\[0\\].metadata', [{ ...text, metadata: () => {} }]], ['onProgress', [], { onProgress: 1 }],
    ['signal', [], { signal: {} }], ['k', [], { k: 1 }]
  ]) await assert.rejects(index.addMany(texts, options), refused(name))
  await assert.rejects(index.remove([7]), refused('ids'))
  await assert.rejects(index.search('lamp', { signal: AbortSignal.abort(new Error('no')) }), { message: 'no' })
  await assert.rejects(index.add('a', 'b', 0, { signal: AbortSignal.abort(new Error('no')) }), { message: 'no' })
  assert.deepEqual(index.ids(), ['lamp', 'parcel', 'letter'])
})
