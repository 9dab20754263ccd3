// The settings of `tritloom/built-in-ai`: how the model of all sessions is had, the visitor asked and the browser's own
// model preferred; and the polyfill. No model is loaded: `BitNet.load` is replaced.
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { inRoot, readText } from '../../scripts/paths.mjs'
import { entry, fails, PROMPT, settled, textsOf } from './drafts.mjs'
import { echo } from './echo.mjs'

const { configure, DecisionModel, LanguageModel, Summarizer } = entry
const { BitNet, BitNetError } = await import('../../pkg/index.js')

const URL_OF_A_MODEL = 'https://example.com/model.gguf'
/** The answers of the replaced methods. */
let world
const natives = {}
const before = { load: BitNet.load, availability: BitNet.availability, missing: BitNet.cache.missing, list: BitNet.cache.list }

beforeEach(() => {
  world = { available: true, missing: 7e8, loads: [], models: [] }
  BitNet.availability = async () => world.available
    ? { available: true, backends: { webgpu: { available: false, reason: 'no GPU here' }, cpu: { available: true } } }
    : { available: false, reason: 'nothing computes here' }
  BitNet.cache.missing = async () => world.missing
  BitNet.cache.list = async () => [{ url: URL_OF_A_MODEL, complete: world.missing === 0 }]
  // A load goes on when the test says so.
  BitNet.load = (url, options) => new Promise((resolve, reject) => {
    const load = {
      url, options, reject,
      ends() {
        world.missing = 0
        const model = echo()
        world.models.push(model)
        resolve(model)
      }
    }
    options.signal.addEventListener('abort', () => reject(options.signal.reason))
    world.loads.push(load)
  })
})
afterEach(() => {
  configure({})
  Object.assign(BitNet, { load: before.load, availability: before.availability })
  Object.assign(BitNet.cache, { missing: before.missing, list: before.list })
  for (const name of Object.keys(natives)) delete globalThis[name]
})

const loads = async count => {
  for (let n = 0; world.loads.length < count; n++) {
    assert.ok(n < 500, `${world.loads.length} loads`)
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  return world.loads[count - 1]
}
/** Creates a session whose model comes at once. */
const loaded = async (create = () => LanguageModel.create()) => {
  const count = world.loads.length + 1
  const session = create()
  ;(await loads(count)).ends()
  return session
}
const activation = hasBeenActive => {
  const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  Object.defineProperty(globalThis, 'navigator', { value: { userActivation: { hasBeenActive } }, configurable: true })
  return () => navigator ? Object.defineProperty(globalThis, 'navigator', navigator) : delete globalThis.navigator
}

test('settings that are wrong', () => {
  for (const settings of [
    null, 'x', { adress: URL_OF_A_MODEL }, { url: 7 }, { url: 'http://' }, { url: 'model.gguf' }, { model: {} }, { model: null }, { url: URL_OF_A_MODEL, model: echo() },
    { load: 7 }, { mayDownload: 'yes' }, { prefer: 'chrome' }, { languages: ['en_'] }, { languages: 7 }, { answers: [] }
  ]) {
    assert.throws(() => configure(settings), error => error instanceof BitNetError && error.code === 'bad-option', JSON.stringify(settings))
  }
})

test('without a model, nothing is available', async () => {
  for (const api of [LanguageModel, Summarizer, DecisionModel]) {
    assert.equal(await api.availability(), 'unavailable')
    await fails(api.create(), 'NotSupportedError', /configure/)
  }
})

test('where nothing can compute, nothing is available or fetched', async () => {
  configure({ url: URL_OF_A_MODEL, mayDownload: () => assert.fail() })
  world.available = false
  assert.equal(await LanguageModel.availability(), 'unavailable')
  await fails(LanguageModel.create(), 'NotSupportedError', /nothing computes here/)
  assert.equal(world.loads.length, 0)
})

test('one load serves all sessions of all interfaces, and each hears of its progress', async () => {
  configure({ url: new URL(URL_OF_A_MODEL), load: { context: 512, cache: 'revalidate' } })
  assert.equal(await LanguageModel.availability(), 'downloadable')
  const heard = [[], []]
  const listen = n => ({ monitor: target => target.addEventListener('downloadprogress', ({ loaded }) => heard[n].push(loaded)) })
  const first = LanguageModel.create(listen(0))
  const load = await loads(1)
  assert.equal(await Summarizer.availability(), 'downloading')
  load.options.onProgress({ fraction: 0.25 })
  const second = Summarizer.create(listen(1))
  await settled()
  for (const fraction of [0.5, 0.5, 1]) load.options.onProgress({ fraction })
  load.ends()
  await Promise.all([first, second])
  assert.deepEqual(heard, [[0, 0.25, 0.5, 1], [0, 0.5, 1]])
  assert.equal(await DecisionModel.availability(), 'available')
  await DecisionModel.create()
  assert.equal(world.loads.length, 1)
  const { url, options: { context, cache } } = load
  assert.deepEqual([url, context, cache], [URL_OF_A_MODEL, 512, 'revalidate'])
})

test('a stored model is available, and needs no permission', async () => {
  configure({ url: URL_OF_A_MODEL, mayDownload: () => assert.fail() })
  world.missing = 0
  assert.equal(await LanguageModel.availability(), 'available')
  const session = LanguageModel.create()
  await loads(1)
  assert.equal(await LanguageModel.availability(), 'available')
  world.loads[0].ends()
  assert.equal(await (await session).prompt(PROMPT), PROMPT)
})

test('a download is refused before the visitor has done something in the page', async () => {
  configure({ url: URL_OF_A_MODEL })
  let restore = activation(false)
  try {
    await fails(LanguageModel.create(), 'NotAllowedError', /clicked/)
    await fails(Summarizer.create(), 'NotAllowedError')
    assert.equal(world.loads.length, 0)
    assert.equal(await LanguageModel.availability(), 'downloadable')
  } finally {
    restore()
  }
  restore = activation(true)
  try {
    await loaded()
  } finally {
    restore()
  }
  // Now that it is here, nothing is asked any more.
  restore = activation(false)
  try {
    assert.ok(await LanguageModel.create())
  } finally {
    restore()
  }
})

test('`mayDownload: true` allows it at any time, `false` never', async () => {
  const restore = activation(false)
  try {
    configure({ url: URL_OF_A_MODEL, mayDownload: true })
    assert.ok(await loaded())
    world.missing = undefined
    configure({ url: URL_OF_A_MODEL, mayDownload: false })
    assert.equal(await LanguageModel.availability(), 'unavailable')
    await fails(LanguageModel.create(), 'NotAllowedError')
    assert.equal(world.loads.length, 1)
    world.missing = 0
    await loaded()
    assert.equal(world.loads[1].options.cache, 'only')
  } finally {
    restore()
  }
})

test('a function asks the visitor, once for all that wait, before any byte comes', async () => {
  const asked = []
  let answer
  const told = () => asked.map(({ url, bytes }) => ({ url, bytes }))
  const mayDownload = download => {
    asked.push(download)
    return new Promise(resolve => { answer = resolve })
  }
  configure({ url: URL_OF_A_MODEL, mayDownload })
  const [one, two] = [LanguageModel.create(), Summarizer.create()]
  while (!answer) await new Promise(setImmediate)
  await settled()
  assert.deepEqual(told(), [{ url: URL_OF_A_MODEL, bytes: 7e8 }])
  assert.equal(await LanguageModel.availability(), 'downloadable')
  answer(false)
  await fails(one, 'NotAllowedError')
  await fails(two, 'NotAllowedError')
  assert.equal(world.loads.length, 0)
  const again = LanguageModel.create()
  while (asked.length < 2) await new Promise(setImmediate)
  answer(true)
  ;(await loads(1)).ends()
  assert.ok(await again)
  // One that throws is the page's error.
  const error = new Error('no dialogs here')
  world.missing = 7e8
  configure({ url: URL_OF_A_MODEL, mayDownload: () => { throw error } })
  await assert.rejects(LanguageModel.create(), found => found === error)
})

test('a server that does not say the size in time does not keep the visitor from being asked', async t => {
  let isWaiting = false
  let bytes = 1
  BitNet.cache.missing = (url, { signal }) => new Promise((_, reject) => {
    isWaiting = true
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  configure({ url: URL_OF_A_MODEL, mayDownload: download => { bytes = download.bytes } })
  const refused = fails(LanguageModel.create(), 'NotAllowedError')
  while (!isWaiting) await new Promise(setImmediate)
  t.mock.timers.tick(4999)
  await new Promise(setImmediate)
  assert.equal(bytes, 1)
  t.mock.timers.tick(1)
  await refused
  assert.equal(bytes, undefined)
})

test('options of a load that fetch all again ask too', async () => {
  world.missing = 0
  for (const cache of ['off', 'refresh']) {
    let bytes = 1
    configure({ url: URL_OF_A_MODEL, load: { cache }, mayDownload: download => { bytes = download.bytes } })
    await fails(LanguageModel.create(), 'NotAllowedError')
    assert.equal(bytes, undefined)
  }
})

test('until a load knows what there is, `availability` finds out', async () => {
  const find = BitNet.availability
  for (const [available, state] of [[true, 'downloadable'], [false, 'unavailable']]) {
    world.available = available
    let count = 0
    let go
    const held = new Promise(resolve => { go = resolve })
    BitNet.availability = async () => {
      count += 1
      await held
      return find()
    }
    configure({ url: URL_OF_A_MODEL, mayDownload: true })
    const session = LanguageModel.create()
    while (count === 0) await new Promise(setImmediate)
    const found = LanguageModel.availability()
    go()
    assert.equal(await found, state)
    if (!available) {
      await fails(session, 'NotSupportedError')
      continue
    }
    ;(await loads(1)).ends()
    await session
    world.missing = 7e8
  }
})

test('a load ends when all that wait for it have stopped, and not before', async () => {
  configure({ url: URL_OF_A_MODEL })
  const [one, two] = [new AbortController(), new AbortController()]
  const waiting = [one, two].map(({ signal }) => LanguageModel.create({ signal }))
  const { options: { signal } } = await loads(1)
  await settled()
  one.abort()
  await fails(waiting[0], 'AbortError')
  assert.equal(signal.aborted, false)
  two.abort()
  await fails(waiting[1], 'AbortError')
  assert.equal(signal.aborted, true)
  assert.ok(await loaded())
})

test('a load that fails is tried again by the next session', async () => {
  configure({ url: URL_OF_A_MODEL })
  for (const [code, name] of [['network', 'NetworkError'], ['out-of-memory', 'OperationError'], ['bad-gguf', 'NotSupportedError'], ['integrity', 'OperationError']]) {
    const session = LanguageModel.create()
    ;(await loads(world.loads.length + 1)).reject(new BitNetError(code, 'why'))
    await fails(session, name, new RegExp(code))
    assert.equal(await LanguageModel.availability(), 'downloadable')
  }
  assert.ok(await loaded())
})

test('other settings hold for new sessions, and the old model goes with its last one', async () => {
  configure({ url: URL_OF_A_MODEL })
  const first = await loaded()
  const copy = await first.clone()
  configure({ url: 'https://example.com/other.gguf' })
  const second = await loaded()
  assert.equal(world.loads[1].url, 'https://example.com/other.gguf')
  first.destroy()
  first.destroy()
  assert.equal(await copy.prompt(PROMPT), PROMPT)
  assert.equal(world.models[0].disposed, 0)
  copy.destroy()
  await new Promise(setImmediate)
  assert.deepEqual(world.models.map(({ disposed }) => disposed), [1, 0])
  second.destroy()
  await new Promise(setImmediate)
  assert.equal(world.models[1].disposed, 0, 'kept for the next session')
})

test('other settings do not end a creation that runs', async () => {
  configure({ url: URL_OF_A_MODEL })
  const first = LanguageModel.create()
  const load = await loads(1)
  configure({})
  load.ends()
  const session = await first
  assert.equal(await session.prompt(PROMPT), PROMPT)
  session.destroy()
  await new Promise(setImmediate)
  assert.equal(world.models[0].disposed, 1)
})

test('other settings end a creation that would only then ask the visitor, and no other', async () => {
  const mayDownload = () => assert.fail('asked')
  configure({ url: URL_OF_A_MODEL, mayDownload })
  const waiting = [LanguageModel.create(), Summarizer.create()]
  configure({})
  for (const session of waiting) await fails(session, 'AbortError', /other settings/)
  world.missing = 0
  configure({ url: URL_OF_A_MODEL, mayDownload })
  const stored = LanguageModel.create()
  configure({})
  ;(await loads(1)).ends()
  assert.equal(await (await stored).prompt(PROMPT), PROMPT)
})

test('creations and clones wait for no timer, as hidden pages slow these down', async t => {
  configure({ model: echo() })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const session = await LanguageModel.create()
  assert.equal(await (await session.clone()).prompt(PROMPT), PROMPT)
})

test('a session that is dropped without `destroy` does not keep a replaced model', async () => {
  configure({ url: URL_OF_A_MODEL })
  await loaded()
  configure({})
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  for (let n = 0; world.models[0].disposed === 0; n++) {
    assert.ok(n < 100)
    collect()
    await new Promise(setImmediate)
  }
})

test('a model of the page that has ended is unavailable', async () => {
  const model = echo()
  configure({ model })
  assert.ok(await LanguageModel.create())
  model.ends(new BitNetError('disposed', 'the model was disposed'))
  for (const settings of [{ model }, { model, prefer: 'browser' }]) {
    assert.equal(await LanguageModel.availability(), 'unavailable')
    await fails(LanguageModel.create(), 'InvalidStateError', /has ended/)
    // It had ended before that.
    configure(settings)
  }
})

test('a model that the page gives is the page\'s to dispose of', async () => {
  const model = echo()
  configure({ model })
  const session = await LanguageModel.create()
  configure({})
  session.destroy()
  await new Promise(setImmediate)
  assert.equal(model.disposed, 0)
  assert.equal(world.loads.length, 0)
})

test('a model whose thread has failed is loaded again', async () => {
  configure({ url: URL_OF_A_MODEL })
  const [one, two] = [await loaded(), await LanguageModel.create()]
  world.models[0].ends(new BitNetError('internal', 'the worker has ended'))
  await settled()
  assert.equal(world.models[0].disposed, 1)
  // No call has failed yet, and still the model is known to be gone.
  world.missing = 7e8
  assert.equal(await LanguageModel.availability(), 'downloadable')
  const third = await loaded(() => Summarizer.create())
  assert.equal(world.loads.length, 2)
  // Sessions of the old model stay dead, and do nothing to the new one.
  for (const session of [one, two]) await fails(session.prompt(PROMPT), 'OperationError', /internal/)
  assert.deepEqual(world.models.map(({ disposed }) => disposed), [1, 0])
  assert.ok(await third.summarize(PROMPT))
  assert.equal(await (await LanguageModel.create()).prompt(PROMPT), PROMPT)
})

test('a creation that is aborted as it ends keeps no model', async () => {
  configure({ url: URL_OF_A_MODEL })
  const first = await loaded()
  const stop = new AbortController()
  const { countTokens } = world.models[0]
  world.models[0].countTokens = async (...given) => {
    stop.abort()
    return countTokens(...given)
  }
  await fails(LanguageModel.create({ signal: stop.signal, initialPrompts: [{ role: 'user', content: PROMPT }] }), 'AbortError')
  configure({})
  first.destroy()
  await settled()
  assert.equal(world.models[0].disposed, 1)
})

test('a destroyed session is not kept by the signal of its creation', async () => {
  configure({ model: echo() })
  const { signal } = new AbortController()
  for (const api of [LanguageModel, Summarizer, DecisionModel]) {
    const session = await api.create({ signal })
    const listeners = getEventListeners(signal, 'abort').length
    session.destroy()
    assert.equal(getEventListeners(signal, 'abort').length, listeners - 1)
  }
})

test('the options of the load are heeded before the visitor is asked', async () => {
  const mayDownload = () => assert.fail('asked')
  configure({ url: URL_OF_A_MODEL, load: { backend: 'webgpu' }, mayDownload })
  assert.equal(await LanguageModel.availability(), 'unavailable')
  await fails(LanguageModel.create(), 'NotSupportedError', /no GPU here/)
  assert.equal(world.loads.length, 0)
  configure({ url: URL_OF_A_MODEL, load: { backend: 'cpu' } })
  assert.equal(await LanguageModel.availability(), 'downloadable')
  configure({ url: URL_OF_A_MODEL, load: { cache: 'only' }, mayDownload })
  assert.equal(await LanguageModel.availability(), 'unavailable')
  const session = LanguageModel.create()
  ;(await loads(1)).reject(new BitNetError('not-cached', 'it is not stored'))
  await fails(session, 'NetworkError', /not stored/)
  world.missing = 0
  assert.equal(await LanguageModel.availability(), 'available')
  configure({ url: `${URL_OF_A_MODEL}#part`, mayDownload })
  assert.equal(await LanguageModel.availability(), 'available')
})

test('a question to the visitor ends with those that wait for it, and with other settings', async () => {
  const asked = []
  const mayDownload = download => new Promise(() => asked.push(download))
  const question = async count => {
    while (asked.length < count) await new Promise(setImmediate)
    return asked[count - 1].signal
  }
  configure({ url: URL_OF_A_MODEL, mayDownload })
  const stop = new AbortController()
  const alone = LanguageModel.create({ signal: stop.signal })
  const first = await question(1)
  assert.equal(first.aborted, false)
  stop.abort()
  await fails(alone, 'AbortError')
  assert.equal(first.aborted, true)
  const waiting = [LanguageModel.create(), Summarizer.create()]
  const second = await question(2)
  await settled()
  configure({ url: URL_OF_A_MODEL })
  for (const session of waiting) await fails(session, 'AbortError', /other settings/)
  assert.equal(second.aborted, true)
  assert.ok(await loaded())
})

/** The browser's own interface, as a class. */
const native = (name, availability) => {
  natives[name] = true
  globalThis[name] = class {
    static asked = []
    static async availability(options) {
      this.asked.push(options)
      if (availability instanceof Error) throw availability
      return availability
    }
    static async create(options) {
      this.asked.push(options)
      return { browsers: name }
    }
  }
  return globalThis[name]
}

test('`prefer: browser` hands over to the browser\'s own model, where it can', async () => {
  for (const [name, ours] of Object.entries({ LanguageModel, Summarizer, DecisionModel })) {
    configure({ url: URL_OF_A_MODEL, prefer: 'browser' })
    const { asked } = native(name, 'downloadable')
    const options = { expectedInputs: [{ type: 'text', languages: ['en'] }] }
    assert.equal(await ours.availability(options), 'downloadable')
    assert.deepEqual(await ours.create(options), { browsers: name })
    assert.ok(asked.length === 3 && asked.every(one => one === options), name)
    assert.equal(world.loads.length, 0)
    configure({ model: echo() })
    assert.ok(await ours.create(options) instanceof ours, 'not unless it is preferred')
  }
})

test('`prefer: browser` takes the package\'s model, where the browser\'s cannot', async () => {
  configure({ model: echo(), prefer: 'browser' })
  for (const state of ['unavailable', new TypeError('no such option')]) {
    native('LanguageModel', state)
    assert.equal(await LanguageModel.availability(), 'available')
    assert.ok(await LanguageModel.create() instanceof LanguageModel)
  }
  // Other scripts may have put something else there.
  for (const other of [{}, { availability() { throw new TypeError('no') } }]) {
    globalThis.LanguageModel = other
    assert.equal(await LanguageModel.availability(), 'available')
  }
  // Installed by the polyfill: not the browser's own.
  globalThis.LanguageModel = LanguageModel
  assert.ok(await LanguageModel.create() instanceof LanguageModel)
  delete globalThis.LanguageModel
  assert.ok(await LanguageModel.create() instanceof LanguageModel)
})

test('the polyfill installs what is missing, and replaces nothing', async () => {
  const own = native('Summarizer', 'available')
  const names = ['LanguageModel', 'LanguageModelToolCall', 'LanguageModelToolError', 'LanguageModelToolSuccess', 'DecisionModel', 'CreateMonitor']
  for (const name of names) natives[name] = true
  const polyfill = await import('../../pkg/built-in-ai/polyfill.js')
  assert.equal(polyfill.configure, configure)
  for (const name of names) assert.equal(globalThis[name], entry[name], name)
  assert.equal(globalThis.Summarizer, own)
  assert.equal(globalThis.QuotaExceededError, entry.QuotaExceededError)
  assert.deepEqual(Object.keys(globalThis).filter(name => names.includes(name)), [])
  polyfill.configure({ model: echo() })
  assert.equal((await textsOf((await globalThis.LanguageModel.create()).promptStreaming(PROMPT))).join(''), PROMPT)
})

test('the polyfill gives a browser\'s own sessions none of this package\'s classes', async () => {
  const own = native('LanguageModel', 'available')
  await import('../../pkg/built-in-ai/polyfill.js?again')
  assert.equal(globalThis.LanguageModel, own)
  assert.equal('LanguageModelToolCall' in globalThis, false)
  natives.Summarizer = natives.DecisionModel = natives.CreateMonitor = true
})

test('importing the entry fetches none of the package but itself', () => {
  const scripts = new Set()
  const visit = path => {
    if (scripts.has(path)) return
    scripts.add(path)
    const text = readFileSync(new URL(path, new URL('../../pkg/', import.meta.url)), 'utf8')
    for (const [, name] of text.matchAll(/^(?:import|export)\b[^'"(]*from '(\.[^']+)'/gm)) visit(new URL(name, `file:///${path}`).pathname.slice(1))
  }
  visit('built-in-ai.js')
  visit('built-in-ai/polyfill.js')
  const others = [...scripts].filter(name => !name.startsWith('built-in-ai'))
  assert.deepEqual(others.sort(), ['address.js', 'check.js', 'error.js', 'page/abort.js', 'platform.js'])
})

test('docs/BUILT-IN-AI.md names tests that there are, and each upstream file once', () => {
  const [, text] = readText('docs/BUILT-IN-AI.md').split('## The web platform tests')
  const tests = readdirSync(inRoot('tests/pkg')).filter(name => name.endsWith('.test.mjs')).map(name => readText(`tests/pkg/${name}`)).join('\n')
  const titles = new Set(Array.from(tests.matchAll(/^test\('((?:[^'\\]|\\.)*)'/gm), ([, title]) => title.replaceAll('\\\'', '\'')))
  const rows = text.split('\n').filter(line => line.startsWith('| `'))
  const files = rows.flatMap(row => Array.from(row.split('|')[1].matchAll(/`([^`]+)`/g), ([, file]) => file))
  const upstream = readText('tests/data/web-platform-tests.txt').trim().split('\n')
  assert.deepEqual(files.sort(), upstream)
  assert.equal(Number(/(\d+) files/.exec(text)[1]), upstream.length)
  const named = rows.flatMap(row => Array.from(row.matchAll(/“([^”]+)”/g), ([, title]) => title.replaceAll('\\|', '|')))
  assert.ok(named.length > 30)
  for (const title of named) assert.ok(titles.has(title), `no test is called “${title}”`)
})
