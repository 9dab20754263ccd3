// The parts of the widget that need no elements: how many bytes there are to download, and which
// models are shared. The element itself is in tests/web/widget.spec.ts.
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'

const { SharedModel } = await import(new URL('../../pkg/widget/model.js', import.meta.url))
const { pointsOf } = await import(new URL('../../pkg/widget/points.js', import.meta.url))
const { labelsOf } = await import(new URL('../../pkg/widget/language.js', import.meta.url))
const { BitNet } = await import(new URL('../../pkg/page/model.js', import.meta.url))
const { cache } = await import(new URL('../../pkg/page/cache.js', import.meta.url))

const { fetch } = globalThis
const { load } = BitNet
afterEach(() => {
  globalThis.fetch = fetch
  BitNet.load = load
})

const user = () => ({ onProgress: () => {}, onLost: () => {} })

/** Answers requests for the headers of files, whose sizes are given by name. */
const serve = sizes => {
  const asked = []
  globalThis.fetch = async (url, { method }) => {
    asked.push(`${method} ${url}`)
    const size = sizes[url.split('/').at(-1)]
    if (size === undefined) throw new TypeError('Failed to fetch')
    return new Response(null, size === 404 ? { status: 404 } : { headers: size === null ? {} : { 'content-length': size } })
  }
  return asked
}

/** Bytes that a model at this address has to download. */
const missing = name => {
  const one = user()
  const model = SharedModel.join(`https://example.com/${name}`, one)
  return model.missing().finally(() => model.leave(one))
}

test('bytes to download are those of all volumes, if the server says all', async () => {
  const asked = serve({
    'a.gguf': '1000', 'none.gguf': 404, 'silent.gguf': null,
    'b-00001-of-00003.gguf': '1', 'b-00002-of-00003.gguf': '20', 'b-00003-of-00003.gguf': '300',
    'c-00001-of-00002.gguf': '1'
  })
  assert.equal(await missing('a.gguf'), 1000)
  assert.deepEqual(asked, ['HEAD https://example.com/a.gguf'])
  assert.equal(await missing('b-00001-of-00003.gguf'), 321)
  for (const name of ['none.gguf', 'silent.gguf', 'blocked.gguf', 'c-00001-of-00002.gguf']) {
    assert.equal(await missing(name), undefined, name)
  }
})

test('more files than a model can have are not asked for, nor is a file that only looks like one of several', async () => {
  const asked = serve({ 'g.gguf?f=b-00001-of-00003.gguf': '5', 'h-00001-of-00003.gguf.txt': '6' })
  assert.equal(await missing('e-00001-of-99999.gguf'), undefined)
  assert.deepEqual(asked, [])
  assert.equal(await missing('g.gguf?f=b-00001-of-00003.gguf'), 5)
  assert.equal(await missing('h-00001-of-00003.gguf.txt'), 6)
  assert.equal(asked.length, 2)
})

test('if the length of a model is stored, its server is not asked', async () => {
  const asked = serve({})
  const { list } = cache
  const url = 'https://example.com/i.gguf'
  cache.list = async () => [{ url, bytes: 300, total: 1000, complete: false }]
  try {
    assert.equal(await missing('i.gguf'), 700)
    assert.deepEqual(asked, [])
  } finally {
    cache.list = list
  }
})

test('of two stored versions the whole one counts, and none leaves less than nothing to download', async () => {
  serve({ 'j.gguf': '400' })
  const url = 'https://example.com/j.gguf'
  const { list } = cache
  const [begun, whole] = [{ url, bytes: 500, total: 600, complete: false }, { url, bytes: 300, total: 300, complete: true }]
  const listed = async models => {
    cache.list = async () => models
    return missing('j.gguf')
  }
  try {
    assert.equal(await listed([begun, whole]), 0)
    assert.equal(await listed([{ ...begun, bytes: 20 }, begun]), 100)
    assert.equal(await listed([{ url, bytes: 500, complete: false }]), undefined)
  } finally {
    cache.list = list
  }
})

test('widgets with one address share a model until the last leaves', async () => {
  const [first, second] = [user(), user()]
  const model = SharedModel.join('https://example.com/a.gguf', first)
  assert.equal(SharedModel.join('https://example.com/a.gguf', second), model)
  assert.notEqual(SharedModel.join('https://example.com/b.gguf', first), model)
  model.allow()
  await model.allowed
  model.leave(first)
  assert.equal(SharedModel.join('https://example.com/a.gguf', second).isAllowed, true)
  model.leave(second)
  assert.equal(SharedModel.join('https://example.com/a.gguf', second).isAllowed, false)
})

test('who waits for a load that others began learns how far it is', async () => {
  const report = { phase: 'compile', fraction: 0.9 }
  const loaded = { lost: new Promise(() => {}), dispose: () => {} }
  let finish
  BitNet.load = (url, { onProgress }) => new Promise(resolve => {
    finish = () => resolve(loaded)
    onProgress(report)
  })
  const [first, second] = [user(), user()]
  const model = SharedModel.join('https://example.com/a.gguf', first)
  const { signal } = new AbortController()
  const loading = model.load(signal)
  assert.equal(model.progress, undefined)
  while (!finish) await new Promise(setImmediate)
  assert.equal(SharedModel.join('https://example.com/a.gguf', second).progress, report)
  finish()
  assert.equal(await loading, loaded)
  assert.equal(model.progress, undefined)
  for (const one of [first, second]) model.leave(one)
})

test('until a download is allowed, only what is stored is loaded; another file that is stored counts as missing', async () => {
  serve({ 'f.gguf': '20' })
  const url = 'https://example.com/f.gguf'
  const { list } = cache
  cache.list = async () => [{ url, bytes: 10, total: 10, complete: true }]
  const modes = []
  const refused = code => Object.assign(new Error(code), { code })
  BitNet.load = async (url, { cache }) => {
    modes.push(cache)
    if (cache === 'only') throw refused('integrity')
    if (modes.length < 3) throw refused('network')
    return { lost: new Promise(() => {}), dispose: () => {} }
  }
  const one = user()
  const model = SharedModel.join(url, one, 'sha256-a')
  const { signal } = new AbortController()
  try {
    assert.equal(await model.missing(), 0)
    await assert.rejects(model.load(signal), { code: 'integrity' })
    assert.equal(model.isUnusable, true)
    assert.equal(await model.missing(), 20)
    model.allow()
    await assert.rejects(model.load(signal), { code: 'network' })
    assert.equal(model.isUnusable, false)
    await model.load(signal)
    assert.deepEqual(modes, ['only', 'use', 'use'])
  } finally {
    model.leave(one)
    cache.list = list
  }
})

test('where storage is blocked, all is to be downloaded', async () => {
  serve({ 'd.gguf': '1000' })
  const { list } = cache
  cache.list = () => Promise.reject(new Error('storage'))
  try {
    assert.equal(await missing('d.gguf'), 1000)
  } finally {
    cache.list = list
  }
})

test('the hash that a widget names is compared, and is part of what is shared', async () => {
  const asked = []
  BitNet.load = async (url, { integrity }) => {
    asked.push(integrity)
    return { lost: new Promise(() => {}), dispose: () => {} }
  }
  const one = user()
  const url = 'https://example.com/e.gguf'
  const [plain, first, again, other] = [undefined, 'sha256-a', 'sha256-a', 'sha256-b'].map(hash => SharedModel.join(url, one, hash))
  assert.equal(first, again)
  assert.equal(new Set([plain, first, other]).size, 3)
  for (const model of [plain, first, other]) await model.load(new AbortController().signal)
  assert.deepEqual(asked, [undefined, 'sha256-a', 'sha256-b'])
  for (const model of [plain, first, other]) model.leave(one)
})

test('key points are read as models write them, also while they are being written', () => {
  const points = text => pointsOf(text).points
  assert.deepEqual(pointsOf('Here they are:\n\n- One.\n- Two: three.'), { introduction: 'Here they are:', points: ['One.', 'Two: three.'] })
  assert.deepEqual(points('* One.\n  • Two.\n3. Three.\n12) Four.\n– Five.'), ['One.', 'Two.', 'Three.', 'Four.', 'Five.'])
  assert.deepEqual(points('One\nTwo'), ['One', 'Two'])
  // A mark whose point has not come is no point, and neither a sign nor a year is a mark.
  assert.deepEqual(points('- One.\n-'), ['One.'])
  assert.deepEqual(points('1. One.\n2.'), ['One.'])
  assert.deepEqual(points('-1 degrees\n2024 was warm'), ['-1 degrees', '2024 was warm'])
  assert.deepEqual(pointsOf('- Only:'), { introduction: '', points: ['Only:'] })
  assert.deepEqual(pointsOf(''), { introduction: '', points: [] })
})

test('labels are in a language that there is, or in English', async () => {
  const found = async language => {
    const { labels, language: taken } = await labelsOf(language)
    return [taken, labels.slots.stop]
  }
  assert.deepEqual(await found('de-AT'), ['de', 'Anhalten'])
  for (const other of ['', 'en-GB', 'xx', 'constructor', 'toString']) assert.deepEqual(await found(other), ['en', 'Stop'])
})
