// `LanguageModel` without a browser, with a model that echoes: its calls, attributes, events and errors. A real model
// answers in tests/web/built-in-ai.spec.ts. Tools: language-model-tools.test.mjs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import {
  entry, expectAborts, expectNoProgressAfterAbort, expectProgress, expectStreamAborts, fails, given, OTHER, PROMPT, settled, textsOf, wrong
} from './drafts.mjs'
import { echo } from './echo.mjs'

const { LanguageModel, CreateMonitor } = entry
const create = (options, model) => {
  given(model ?? echo())
  return LanguageModel.create(options)
}
const STATES = ['unavailable', 'downloadable', 'downloading', 'available']
const MODES = [
  'most-predictable', 'predictable', 'slightly-predictable', 'balanced', 'slightly-creative', 'creative', 'most-creative'
]

test('availability: with no options, and with those that the model can do', async () => {
  given(echo())
  assert.equal(await LanguageModel.availability(), 'available')
  for (const expectedInputs of [undefined, [], [{ type: 'text' }], [{ type: 'text', languages: ['en', 'ja'] }]]) {
    for (const expectedOutputs of [undefined, [], [{ type: 'text', languages: ['en'] }]]) {
      assert.equal(await LanguageModel.availability({ expectedInputs, expectedOutputs, topK: 1.5, temperature: -3 }), 'available')
    }
  }
})

test('availability: a known state for any plausible options, and for initial prompts of any order', async () => {
  given(echo())
  const [system, user] = [{ role: 'system', content: 'Sing.' }, { role: 'user', content: 'Now.' }]
  for (const topK of [undefined, -2, 0, 1.5, 99]) {
    for (const initialPrompts of [undefined, [], [system], [system, user], [system, system]]) {
      for (const type of ['text', 'image', 'audio']) {
        const state = await LanguageModel.availability({ topK, temperature: 7, initialPrompts, expectedInputs: [{ type, languages: ['fr'] }] })
        assert.ok(STATES.includes(state))
      }
    }
  }
})

test('unavailable: pictures, sounds, and languages that the model does not know; `create` refuses them', async () => {
  given(echo(), { languages: ['en', 'ja'] })
  for (const options of [
    { expectedInputs: [{ type: 'image' }] }, { expectedInputs: [{ type: 'audio', languages: ['en'] }] },
    { expectedInputs: [{ type: 'audio' }, { type: 'image' }, { type: 'text' }] },
    { expectedOutputs: [{ type: 'image' }] }, { expectedOutputs: [{ type: 'audio' }] }, { expectedOutputs: [{ type: 'tool-response' }] },
    { expectedInputs: [{ type: 'text', languages: ['unk'] }] }, { expectedOutputs: [{ type: 'text', languages: ['en', 'unk'] }] }
  ]) {
    assert.equal(await LanguageModel.availability(options), 'unavailable', JSON.stringify(options))
    await fails(LanguageModel.create(options), 'NotSupportedError')
  }
  assert.equal(await LanguageModel.availability({ expectedInputs: [{ type: 'text', languages: ['en-GB', 'JA'] }] }), 'available')
})

test('options that are wrong by their type reject, language tags that are malformed with a RangeError', async () => {
  given(echo())
  for (const call of [LanguageModel.availability, LanguageModel.create]) {
    await wrong(call({ expectedInputs: [{ type: 'soup' }] }))
    await wrong(call({ expectedInputs: [{}] }))
    await wrong(call({ expectedInputs: 7 }))
    await wrong(call({ samplingMode: 'wild' }))
    await wrong(call({ samplingMode: Symbol('x') }))
    await wrong(call('options'))
    for (const tag of ['en-abc-invalid', 'e', 'Latn', '11', 'en_Latn', 'en-Lat', 'en-A999']) {
      await wrong(call({ expectedInputs: [{ type: 'text', languages: [tag] }] }), RangeError)
    }
  }
  await wrong(LanguageModel.create({ signal: 'now' }))
  await wrong(LanguageModel.create({ monitor: 'me' }))
  await wrong(LanguageModel.create({ initialPrompts: 'Sing.' }))
  assert.ok(await LanguageModel.create({ expectedInputs: [{ type: 'text', languages: ['EN', 'EN-lATN-gb', 'es-419'] }] }))
})

test('sampling modes: all seven are kept by `clone`, `balanced` is the default, and each draws more freely than the last', async () => {
  const model = given(echo())
  for (const samplingMode of MODES) {
    assert.equal(await LanguageModel.availability({ samplingMode }), 'available')
    const session = await LanguageModel.create({ samplingMode })
    assert.deepEqual([session.samplingMode, (await session.clone()).samplingMode], [samplingMode, samplingMode])
    await session.prompt(PROMPT)
  }
  const temperatures = model.asked.map(({ options }) => options.temperature)
  assert.deepEqual(temperatures, [...temperatures].sort((a, b) => a - b))
  assert.deepEqual([temperatures[0], new Set(temperatures).size], [0, MODES.length])
  assert.equal((await LanguageModel.create()).samplingMode, 'balanced')
})

test('topK and temperature are ignored, as in pages of browsers: there are no `params`', async () => {
  const model = given(echo())
  assert.equal('params' in LanguageModel, false)
  for (const options of [{ topK: 3 }, { temperature: -1 }, { samplingMode: 'balanced', topK: 10, temperature: 0.8 }]) {
    assert.equal(await LanguageModel.availability(options), 'available')
    const session = await LanguageModel.create(options)
    assert.deepEqual([session.topK, session.temperature, session.samplingMode], [undefined, undefined, 'balanced'])
    await session.prompt(PROMPT)
    assert.equal(model.asked.at(-1).options.topK, undefined)
  }
})

test('create: a session has the calls and attributes of the draft, with their older names', async () => {
  const session = await create()
  assert.ok(session instanceof LanguageModel && session instanceof EventTarget)
  for (const name of ['prompt', 'promptStreaming', 'append', 'measureContextUsage', 'measureInputUsage', 'clone', 'destroy']) {
    assert.equal(typeof session[name], 'function', name)
  }
  assert.deepEqual([session.contextUsage, session.contextWindow, session.inputUsage, session.inputQuota], [0, 200, 0, 200])
  assert.deepEqual([session.oncontextoverflow, session.onquotaoverflow], [null, null])
  assert.throws(() => new LanguageModel(), TypeError)
  assert.throws(() => { 'use strict'; session.contextUsage = 5 }, TypeError)
})

test('create: initial prompts of any roles, the system\'s first', async () => {
  const [system, user, assistant] = ['system', 'user', 'assistant'].map(role => ({ role, content: `${role} says` }))
  for (const initialPrompts of [[], [user, assistant], [system, user, assistant], new Set([system])]) {
    assert.ok(await create({ initialPrompts }))
  }
  await wrong(create({ initialPrompts: [user, assistant, system] }))
  await wrong(create({ initialPrompts: [system, { role: 'system', content: 'more' }, user] }))
  await wrong(create({ initialPrompts: [{ role: 'tool', content: 'x' }] }))
  await wrong(create({ initialPrompts: [{ role: 'user' }] }))
  await fails(create({ initialPrompts: [user, { ...assistant, prefix: true }] }), 'SyntaxError')
})

test('create: the monitor hears of progress, from 0 to 1', async () => {
  assert.ok(await expectProgress(create) instanceof LanguageModel)
  const monitors = []
  await create({ monitor: monitor => monitors.push(monitor) })
  assert.ok(monitors[0] instanceof CreateMonitor && monitors.length === 1)
})

test('create: no progress after an abort', async () => {
  await expectNoProgressAfterAbort(create)
})

test('create: rejects with what the monitor throws', async () => {
  const error = new Error('mine')
  await assert.rejects(create({ monitor: () => { throw error } }), found => found === error)
})

test('create: initial prompts that are too long', async () => {
  const session = await create()
  const content = PROMPT.repeat(session.inputQuota)
  const requested = await session.measureInputUsage(content)
  assert.ok(requested > session.inputQuota)
  await assert.rejects(create({ initialPrompts: [{ role: 'system', content }] }), error => {
    assert.deepEqual([error.name, error.requested, error.quota], ['QuotaExceededError', requested, session.inputQuota])
    return error instanceof DOMException && error instanceof entry.QuotaExceededError
  })
})

test('create: initial prompts leave room for one token at least', async () => {
  // Two tokens are those around a message.
  const initialPrompts = count => [{ role: 'user', content: 'x '.repeat(count - 2).trim() }]
  await assert.rejects(create({ initialPrompts: initialPrompts(200) }), { name: 'QuotaExceededError', requested: 200, quota: 200 })
  assert.equal((await create({ initialPrompts: initialPrompts(199) })).contextUsage, 199)
})

test('aborts: `create`, `clone`, `prompt`, `append`, measuring and streams end with the signal\'s reason', async () => {
  await expectAborts(signal => create({ signal }))
  const session = await create()
  await expectAborts(signal => session.clone({ signal }))
  await expectAborts(signal => session.prompt(PROMPT, { signal }))
  await expectAborts(signal => session.append(PROMPT, { signal }))
  await expectAborts(signal => session.measureContextUsage(PROMPT, { signal }))
  await expectStreamAborts(signal => session.promptStreaming(PROMPT, { signal }))
})

test('after an aborted prompt the session goes on, without it', async () => {
  const session = await create()
  const stop = new AbortController()
  const running = session.prompt(OTHER, { signal: stop.signal })
  const waiting = session.prompt(OTHER, { signal: stop.signal })
  stop.abort()
  await fails(running, 'AbortError')
  await fails(waiting, 'AbortError')
  assert.equal(await session.prompt(PROMPT), PROMPT)
})

test('streams can be looped over where the browser\'s own cannot', async () => {
  const { prototype } = ReadableStream
  const own = Object.getOwnPropertyDescriptor(prototype, Symbol.asyncIterator)
  delete prototype[Symbol.asyncIterator]
  try {
    const model = given(echo({ contextLength: 1000 }))
    const session = await LanguageModel.create()
    assert.equal((await textsOf(session.promptStreaming(PROMPT))).join(''), PROMPT)
    for await (const text of session.promptStreaming(`${OTHER} `.repeat(50))) {
      assert.ok(text)
      break
    }
    await settled()
    assert.equal(model.running, 0, 'leaving the loop stops the model')
    const stop = new AbortController()
    const running = textsOf(session.promptStreaming(PROMPT, { signal: stop.signal }))
    stop.abort()
    await fails(running, 'AbortError')
  } finally {
    Object.defineProperty(prototype, Symbol.asyncIterator, own)
  }
})

test('after an aborted stream the session goes on, without it', async () => {
  const model = given(echo())
  const session = await LanguageModel.create()
  const stop = new AbortController()
  const stream = session.promptStreaming(OTHER, { signal: stop.signal })
  stop.abort()
  await fails(stream.pipeTo(new WritableStream()), 'AbortError')
  assert.equal((await textsOf(session.promptStreaming(PROMPT))).join(''), PROMPT)
  // Cancelling a stream and leaving its loop stop the model too.
  for await (const text of session.promptStreaming(`${OTHER} `.repeat(9))) {
    assert.ok(text)
    break
  }
  await session.promptStreaming(OTHER).cancel()
  assert.equal(session.contextUsage, await session.measureContextUsage([
    { role: 'user', content: PROMPT }, { role: 'assistant', content: PROMPT }
  ]))
  await settled()
  assert.equal(model.running, 0)
  // One that still waits is never asked.
  const running = session.prompt(OTHER)
  await session.promptStreaming('never').cancel()
  await running
  await session.prompt(PROMPT)
  assert.doesNotMatch(JSON.stringify(model.asked), /never/)
})

test('an abort as the answer has come leaves no trace either', async () => {
  const model = given(echo())
  const session = await LanguageModel.create()
  const stop = new AbortController()
  const { countTokens } = model
  model.countTokens = async messages => {
    if (messages.at(-1).role === 'assistant') stop.abort()
    return countTokens(messages)
  }
  await fails(session.prompt(PROMPT, { signal: stop.signal }), 'AbortError')
  assert.equal(session.contextUsage, 0)
})

test('the signal of `create` destroys the session later', async () => {
  const stop = new AbortController()
  const session = await create({ signal: stop.signal })
  const running = session.prompt(PROMPT)
  const reason = new Error('left')
  stop.abort(reason)
  await assert.rejects(running, error => error === reason)
  await assert.rejects(session.prompt(PROMPT), error => error === reason)
})

test('destroy: calls that run and all later ones reject, attributes stay', async () => {
  const session = await create()
  const running = [session.prompt(PROMPT), session.append(PROMPT), session.measureContextUsage(PROMPT), session.clone()]
  const stream = session.promptStreaming(PROMPT)
  session.destroy()
  session.destroy()
  for (const call of running) await fails(call, 'InvalidStateError')
  await fails(textsOf(stream), 'InvalidStateError')
  for (const name of ['prompt', 'append', 'measureContextUsage', 'measureInputUsage']) await fails(session[name](PROMPT), 'InvalidStateError')
  await fails(session.clone(), 'InvalidStateError')
  assert.throws(() => session.promptStreaming(PROMPT), { name: 'InvalidStateError' })
  assert.deepEqual([session.inputQuota, session.inputUsage, session.temperature, session.topK], [200, 0, undefined, undefined])
})

test('prompt: the answer is a text, and both become part of the conversation', async () => {
  const session = await create()
  assert.equal(session.contextUsage, 0)
  const asked = await session.measureContextUsage(PROMPT)
  assert.ok(asked > 0)
  const answer = await session.prompt(PROMPT)
  assert.equal(answer, PROMPT)
  assert.equal(session.contextUsage, asked + await session.measureContextUsage(answer))
  assert.equal(await session.prompt('Which one?'), [PROMPT, PROMPT, 'Which one?'].join('\n'))
})

test('prompts of one session are answered in their order, those of two side by side', async () => {
  const model = given(echo({ contextLength: 1000 }))
  const [one, two] = [await LanguageModel.create(), await LanguageModel.create()]
  assert.deepEqual(
    await Promise.all([one.prompt('a'), one.prompt('a'), one.prompt('b'), two.prompt(OTHER)]),
    ['a', 'a\na\na', 'a\na\na\na\na\na\nb', OTHER]
  )
  assert.equal(model.most, 2)
})

test('streams of one session come one after the other', async () => {
  const session = await create()
  const [first, second, third] = await Promise.all([PROMPT, PROMPT, OTHER].map(text => textsOf(session.promptStreaming(text))))
  assert.equal(first.join(''), PROMPT)
  assert.ok(first.length > 1, 'deltas')
  assert.equal(second.join(''), `${PROMPT}\n${PROMPT}\n${PROMPT}`)
  assert.ok(third.join('').endsWith(OTHER))
})

const EMPTY = {
  'null': [null, 'null'],
  'undefined': [undefined, 'undefined'],
  'object': [{}, '[object Object]'],
  'string': ['', ''],
  'array': [[], ''],
  'sequence': [[{ role: 'user', content: [] }], ''],
  'sequence with an empty string': [[{ role: 'user', content: [{ type: 'text', value: '' }] }], '']
}

test('prompt: empty inputs, and those that become texts', async () => {
  for (const [name, [input, text]] of Object.entries(EMPTY)) assert.equal(await (await create()).prompt(input), text, name)
  assert.equal(await (await create()).prompt({ role: 'system', content: 'no array' }), '[object Object]')
})

test('promptStreaming: empty inputs, and those that become texts', async () => {
  for (const [name, [input, text]] of Object.entries(EMPTY)) {
    const stream = (await create()).promptStreaming(input)
    assert.ok(stream instanceof ReadableStream)
    assert.equal((await textsOf(stream)).join(''), text, name)
  }
})

test('append: empty inputs, and those that become texts', async () => {
  const session = await create()
  for (const [name, [input]] of Object.entries(EMPTY)) assert.equal(await session.append(input), undefined, name)
})

test('an empty prompt answers what was appended, and an answer without words is none', async () => {
  const model = given(echo({ says: messages => messages.length === 1 ? '' : 'yes' }))
  const session = await LanguageModel.create()
  assert.equal(await session.prompt(' '), '')
  assert.deepEqual(model.asked, [])
  assert.equal(await session.measureContextUsage(''), 0)
  await session.append('Name a bird.')
  assert.equal(await session.prompt([]), '')
  assert.deepEqual(model.asked[0].messages, [{ role: 'user', content: 'Name a bird.' }])
  assert.equal(await session.prompt('Another.'), 'yes')
})

test('append: the next prompt knows it, and the model has read it', async () => {
  const model = given(echo())
  const session = await LanguageModel.create()
  const usage = await session.measureContextUsage(PROMPT)
  assert.equal(await session.append(PROMPT), undefined)
  assert.equal(session.contextUsage, usage)
  assert.deepEqual(model.warmed, [[{ role: 'user', content: PROMPT }]])
  assert.equal(await session.prompt(OTHER), `${PROMPT}\n${OTHER}`)
})

test('append: an input that is too long', async () => {
  const session = await create()
  const long = PROMPT.repeat(session.contextWindow)
  const requested = await session.measureContextUsage(long)
  await assert.rejects(session.append(long), { name: 'QuotaExceededError', requested, quota: session.contextWindow })
  assert.equal(session.contextUsage, 0)
})

test('the system\'s message comes first or not at all', async () => {
  const [system, user] = [{ role: 'system', content: 'Sing.' }, { role: 'user', content: 'Now.' }]
  for (const name of ['prompt', 'append']) {
    const session = await create()
    await wrong(session[name]([user, system]))
    await wrong(session[name]([system, system]))
    const first = session[name]({})
    // The first one still runs.
    await wrong(session[name]([system]))
    await first
    await wrong(session[name]([system]))
    assert.equal(await (await create())[name]([system, user]), name === 'prompt' ? 'Sing.\nNow.' : undefined)
  }
  await wrong((await create({ initialPrompts: [user] })).prompt([system]))
  const session = await create()
  await session.append([user])
  assert.throws(() => session.promptStreaming([system]), TypeError)
})

test('messages that are none', async () => {
  const session = await create()
  for (const input of [
    [null], ['text'], [{}], [{ role: 'user' }], [{ role: 'robot', content: 'x' }], [{ role: 'user', content: [{ type: 'soup', value: 'x' }] }],
    [{ role: 'user', content: [{ type: 'text' }] }], [{ role: 'user', content: [{ type: 'text', value: {} }] }], Symbol('x')
  ]) {
    await wrong(session.prompt(input))
    await wrong(session.measureContextUsage(input))
  }
  const content = [{ type: 'text', value: 'one ' }, { type: 'text', value: 2 }]
  assert.equal(await session.prompt([{ role: 'user', content }]), 'one 2')
})

test('content that a model of texts cannot take', async () => {
  const session = await create()
  for (const type of ['image', 'audio']) {
    for (const value of [new Blob(), new ArrayBuffer(8), new Uint8Array(8)]) {
      const content = [{ type: 'text', value: 'describe this' }, { type, value }]
      await fails(session.prompt([{ role: 'user', content }]), 'NotSupportedError')
      await fails(session.append([{ role: 'user', content }]), 'NotSupportedError')
      await fails(session.prompt([{ role: 'assistant', content: [{ type, value }] }]), 'NotSupportedError')
      await fails(create({ initialPrompts: [{ role: 'user', content }] }), 'NotSupportedError')
      await wrong(session.prompt([{ role: 'user', content: [{ type: 'text', value }] }]))
    }
  }
  // None of this has become part of the conversation.
  assert.equal(await session.prompt(PROMPT), PROMPT)
})

test('measureContextUsage: texts, and messages of all roles at any time', async () => {
  const initialPrompts = ['system', 'user', 'assistant'].map(role => ({ role, content: 'a word' }))
  const session = await create({ initialPrompts })
  assert.ok(await session.measureContextUsage('This is a prompt.') > 0)
  assert.equal(await session.measureContextUsage(initialPrompts), session.contextUsage)
  assert.equal(await session.measureInputUsage(initialPrompts), session.inputUsage)
  const wish = { responseConstraint: { type: 'null' } }
  assert.ok(await session.measureContextUsage(PROMPT, wish) > await session.measureContextUsage(PROMPT))
  assert.equal(
    await session.measureContextUsage(PROMPT, { ...wish, omitResponseConstraintInput: true }), await session.measureContextUsage(PROMPT)
  )
  await wrong(session.measureContextUsage(PROMPT, { omitResponseConstraintInput: true }))
})

test('initial prompts count, are read in advance, and the model knows them', async () => {
  const model = given(echo())
  const initialPrompts = [{ role: 'system', content: [{ type: 'text', value: 'The word of the day is nightingale.' }] }]
  const session = await LanguageModel.create({ initialPrompts })
  assert.equal(session.contextUsage, await session.measureContextUsage(initialPrompts))
  assert.equal(model.warmed.length, 1)
  assert.match(await session.prompt('What is it?'), /nightingale/)
})

test('overflow: the oldest turns are evicted, with an event, and never the initial prompts', async () => {
  const says = messages => messages.at(-1).content.slice(0, 9)
  const session = await create({ initialPrompts: [{ role: 'system', content: 'Sing.' }, { role: 'user', content: 'First.' }] }, given(echo({ says })))
  const heard = []
  session.oncontextoverflow = event => heard.push([event.type, session.contextUsage])
  session.addEventListener('contextoverflow', () => heard.push('listener'))
  session.onquotaoverflow = ({ type }) => heard.push(type)
  const long = 'night '.repeat(60)
  await session.prompt(`one ${long}`)
  await session.prompt(`two ${long}`)
  const { contextUsage } = session
  assert.deepEqual(heard, [])
  await session.append(`three ${long}`)
  assert.deepEqual([heard[0][0], ...heard.slice(1)], ['contextoverflow', 'listener', 'quotaoverflow'])
  assert.ok(heard[0][1] < contextUsage, 'what is left, when the event comes')
  assert.ok(session.contextUsage < session.contextWindow)
  session.oncontextoverflow = 5
  assert.equal(session.oncontextoverflow, null)
  const copy = await session.clone()
  await copy.prompt('four')
  assert.ok(session.contextUsage < copy.contextUsage)
})

test('overflow: the model gets what is left', async () => {
  const model = given(echo({ says: () => 'yes' }))
  const session = await LanguageModel.create({ initialPrompts: [{ role: 'system', content: 'Sing.' }] })
  for (const name of ['one', 'two', 'three']) await session.prompt(`${name} ${'night '.repeat(70)}`)
  const seen = model.asked.at(-1).messages.map(({ role, content }) => `${role} ${content.split(' ')[0]}`)
  assert.deepEqual(seen, ['system Sing.', 'user three'])
})

test('overflow: the system\'s message of a first prompt is kept too', async () => {
  const model = given(echo({ says: () => 'yes' }))
  const session = await LanguageModel.create()
  await session.prompt([{ role: 'system', content: 'Sing.' }, { role: 'user', content: 'night '.repeat(80) }])
  for (const name of ['two', 'three']) await session.prompt(`${name} ${'night '.repeat(70)}`)
  const seen = model.asked.at(-1).messages.map(({ role, content }) => `${role} ${content.split(' ')[0]}`)
  assert.deepEqual(seen, ['system Sing.', 'user three'])
})

test('overflow: a prompt that is aborted or fails evicts nothing', async () => {
  const long = name => `${name} ${'night '.repeat(60)}`
  const { BitNetError } = await import('../../pkg/error.js')
  const model = given(echo({ says: () => 'yes' }))
  const session = await LanguageModel.create()
  for (const name of ['one', 'two']) await session.prompt(long(name))
  const { contextUsage } = session
  session.oncontextoverflow = () => assert.fail('evicted')
  const { countTokens, generate } = model
  const stop = new AbortController()
  let counted = 0
  model.countTokens = async (...args) => {
    counted += 1
    stop.abort()
    return countTokens(...args)
  }
  await fails(session.prompt(long('three'), { signal: stop.signal }), 'AbortError')
  await settled()
  assert.equal(counted, 1, 'none is counted for a call that has ended')
  model.countTokens = countTokens
  model.generate = () => { throw new BitNetError('device-lost', 'the driver was reset') }
  await fails(session.prompt(long('three')), 'OperationError')
  assert.equal(session.contextUsage, contextUsage)
  model.generate = generate
  let heard = 0
  session.oncontextoverflow = () => { heard += 1 }
  await session.prompt(long('three'))
  assert.equal(heard, 1)
})

test('overflow: a wrong setting of answers evicts nothing', async () => {
  for (const maxTokens of ['x', NaN, {}]) {
    given(echo(), { answers: { maxTokens } })
    const session = await LanguageModel.create()
    let heard = 0
    session.oncontextoverflow = () => { heard += 1 }
    for (const word of ['one', 'two']) await session.append(word)
    assert.deepEqual([session.contextUsage, heard], [6, 0])
  }
})

test('measureContextUsage: the beginning of an answer', async () => {
  const session = await create()
  const content = 'The first one is'
  assert.equal(await session.measureContextUsage([{ role: 'assistant', content, prefix: true }]), 2 + 4)
  await session.append(PROMPT)
  const long = [{ role: 'assistant', content: 'is '.repeat(300), prefix: true }]
  await assert.rejects(session.prompt(long), { name: 'QuotaExceededError', requested: 303 })
})

test('prompt: an input leaves room for one token at least', async () => {
  const session = await create({}, given(echo({ says: () => 'one two' })))
  // Two tokens are those around a message.
  const words = count => 'x '.repeat(count - 2).trim()
  await assert.rejects(session.prompt(words(session.contextWindow)), { name: 'QuotaExceededError', requested: 201, quota: 200 })
  assert.equal(await session.prompt(words(session.contextWindow - 1)), 'one')
})

test('prompt: an input that is too long, even without all that went before', async () => {
  const session = await create()
  await session.prompt(PROMPT)
  const { contextUsage } = session
  const long = PROMPT.repeat(session.contextWindow)
  const requested = await session.measureContextUsage(long)
  const expected = { name: 'QuotaExceededError', requested, quota: session.contextWindow }
  await assert.rejects(session.prompt(long), expected)
  await assert.rejects(textsOf(session.promptStreaming(long)), expected)
  assert.equal(session.contextUsage, contextUsage, 'nothing is evicted')
})

test('clone: the same conversation and settings, and independent from then on', async () => {
  const session = await create({ samplingMode: 'creative' })
  assert.equal(await session.prompt(PROMPT), PROMPT)
  const running = session.prompt('later')
  const copy = await session.clone()
  await running
  assert.deepEqual([copy.inputQuota, copy.samplingMode, copy.topK], [session.inputQuota, 'creative', undefined])
  const before = copy.contextUsage
  assert.ok(before < session.contextUsage, 'a prompt that runs is not part of it')
  session.destroy()
  assert.equal(await copy.prompt(OTHER), [PROMPT, PROMPT, OTHER].join('\n'))
  assert.ok(copy.contextUsage > before)
})

const RATING = {
  type: 'object', required: ['Rating'], additionalProperties: false,
  properties: { Rating: { type: 'number', minimum: 0, maximum: 5 } }
}
const SCHEMAS = {
  array: [{ type: 'array' }, Array.isArray],
  boolean: [{ type: 'boolean' }, value => typeof value === 'boolean'],
  integer: [{ type: 'integer' }, Number.isInteger],
  'bounded integer': [{ type: 'integer', minimum: 1, maximum: 5 }, value => value >= 1 && value <= 5],
  null: [{ type: 'null' }, value => value === null],
  number: [{ type: 'number' }, value => typeof value === 'number'],
  'bounded number': [{ type: 'number', minimum: -1, maximum: 1 }, value => Math.abs(value) <= 1],
  object: [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }, value => 'a' in value],
  string: [{ type: 'string' }, value => typeof value === 'string'],
  rating: [RATING, ({ Rating }) => Rating >= 0 && Rating <= 5]
}

test('responseConstraint: answers are valid by a JSON schema of any type', async () => {
  for (const [name, [responseConstraint, isValid]] of Object.entries(SCHEMAS)) {
    const session = await create()
    assert.ok(isValid(JSON.parse(await session.prompt('hello', { responseConstraint }))), name)
    assert.ok(isValid(JSON.parse((await textsOf(session.promptStreaming('hello', { responseConstraint }))).join(''))), name)
  }
})

test('responseConstraint: the model is told about it, unless the prompt omits it', async () => {
  const model = given(echo())
  const told = async (responseConstraint, omitResponseConstraintInput) => {
    const session = await LanguageModel.create()
    await session.prompt('hello', { responseConstraint, omitResponseConstraintInput })
    return model.asked.at(-1).messages[0].content
  }
  assert.ok((await told(RATING)).includes(JSON.stringify(RATING)))
  assert.ok((await told(/[a-c]d/)).includes('[a-c]d'))
  assert.equal(await told(RATING, true), 'hello')
  assert.equal(await told(/[a-c]d/, true), 'hello')
  await wrong((await LanguageModel.create()).prompt('hello', { omitResponseConstraintInput: true }))
})

test('responseConstraint: a regular expression of another frame', async () => {
  assert.equal(await (await create()).prompt('hello', { responseConstraint: runInNewContext('/yes|no/') }), 'no')
})

test('responseConstraint: schemas that are none', async () => {
  const session = await create()
  const circular = {}
  circular.self = circular
  for (const responseConstraint of [circular, { type: 'soup' }, [], { type: 'object', not: {} }, new Map()]) {
    await fails(session.prompt(PROMPT, { responseConstraint }), 'NotSupportedError')
    await fails(textsOf(session.promptStreaming(PROMPT, { responseConstraint })), 'NotSupportedError')
  }
  for (const responseConstraint of [null, 'schema', 7]) await wrong(session.prompt(PROMPT, { responseConstraint }))
  assert.equal(await session.prompt(PROMPT), PROMPT)
})

test('responseConstraint: a schema is read at the call', async () => {
  const session = await create()
  const schema = { enum: ['a'] }
  const running = [session.prompt(PROMPT), session.prompt(PROMPT, { responseConstraint: schema })]
  schema.enum[0] = 'b'
  assert.equal((await Promise.all(running))[1], '"a"')
})

const begun = (content, responseConstraint) => async session =>
  session.prompt([{ role: 'user', content: 'hello' }, { role: 'assistant', content, prefix: true }], { responseConstraint })

test('prefix: it and the answer together are valid', async () => {
  const session = await create()
  const start = '{"Rating":'
  assert.ok(SCHEMAS.rating[1](JSON.parse(start + await begun(start, RATING)(session))))
  assert.match(`Greetings${await begun('Greetings', /^Greetings and salutations.*/)(await create())}`, /^Greetings and salutations/)
})

test('prefix: one with which no valid answer begins', async () => {
  await fails(begun('invalid', RATING)(await create()), 'NotSupportedError')
  await fails(begun('invalid', /^Greetings and salutations.*/)(await create()), 'NotSupportedError')
})

test('prefix: the answer goes on after it, and the conversation has both', async () => {
  const model = given(echo({ says: messages => messages.at(-1).prefix ? 'rest' : 'whole' }))
  const session = await LanguageModel.create()
  assert.equal(await begun('The ')(session), 'rest')
  assert.equal(await session.prompt('And?'), 'whole')
  assert.deepEqual(model.asked.at(-1).messages.slice(0, 2), [{ role: 'user', content: 'hello' }, { role: 'assistant', content: 'The rest' }])
  assert.equal(await begun('')(session), 'whole', 'an empty one begins nothing')
})

test('prefix: only of the last message, and of the assistant', async () => {
  const session = await create()
  await fails(session.prompt([{ role: 'user', content: 'x', prefix: true }]), 'SyntaxError')
  await fails(session.prompt([{ role: 'assistant', content: 'x', prefix: true }, { role: 'user', content: 'y' }]), 'SyntaxError')
  await fails(session.append([{ role: 'assistant', content: 'x', prefix: true }]), 'SyntaxError')
})

/** Regular expressions of the kinds that pages use. */
const PATTERNS = {
  boolean: /^(true|false)$/,
  'bullet points': /^(\* .*\n?)+$/,
  'character range': /^[a-f]+$/,
  'row of CSV': /^([^,]+,)+[^,]+$/,
  date: /^\d{4}-\d{2}-\d{2}$/,
  decimal: /^-?\d+\.\d+$/,
  email: /^[\w.%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$/,
  enumeration: /^(red|green|blue)$/,
  'exact length': /^.{12}$/,
  integer: /^-?\d+$/,
  list: /^\s*"[a-z]+"\s*(?:,\s*"[a-z]+"\s*)*$/,
  literal: /hello/,
  'greatest length': /^.{0,125}$/,
  quote: /^\"[^\"]*\"$/,
  time: /^\d{2}:\d{2}(:\d{2})?$/,
  URL: /^https?:\/\/[^\s$.?#].[^\s]*$/,
  word: /^[A-Za-z]+$/
}

test('responseConstraint: answers match a regular expression', async () => {
  for (const [name, responseConstraint] of Object.entries(PATTERNS)) {
    const answer = await (await create()).prompt('hello', { responseConstraint })
    assert.match(answer, responseConstraint, name)
  }
  await fails((await create()).prompt('hello', { responseConstraint: /a/i }), 'NotSupportedError')
})

test('an answer that is cut off has no format', async () => {
  given(echo({ says: messages => messages.at(-1).content }), { answers: { maxTokens: 1 } })
  const session = await LanguageModel.create()
  await fails(session.prompt('hello', { responseConstraint: /a b c/ }), 'SyntaxError')
  assert.equal(await session.prompt('one two three'), 'one')
})

test('a model that can reason does not, unless the settings say so, and never before an answer that is begun', async () => {
  const model = echo({ thinking: true })
  for (const [answers, thinking] of [[undefined, false], [{ thinking: true }, true]]) {
    given(model, { answers })
    await (await LanguageModel.create()).prompt(PROMPT)
    assert.equal(model.asked.at(-1).options.thinking, thinking)
    await begun('The ')(await LanguageModel.create())
    assert.equal('thinking' in model.asked.at(-1).options, false)
  }
})

test('settings of answers hold, and a sampling mode goes before them', async () => {
  const model = given(echo({ thinking: true }), { answers: { temperature: 0.1, seed: 7, maxTokens: 20 } })
  await (await LanguageModel.create()).prompt(PROMPT)
  await (await LanguageModel.create({ samplingMode: 'most-creative' })).prompt(PROMPT)
  const [plain, creative] = model.asked.map(({ options }) => options)
  assert.deepEqual([plain.temperature, plain.seed, plain.maxTokens, plain.thinking], [0.1, 7, 20, false])
  assert.ok(creative.temperature > 1)
})

test('errors of the package become the draft\'s, with their cause', async () => {
  const { BitNetError } = await import('../../pkg/error.js')
  for (const [code, name] of [
    ['device-lost', 'OperationError'], ['internal', 'OperationError'], ['network', 'NetworkError'], ['disposed', 'InvalidStateError'],
    ['bad-template', 'NotSupportedError'], ['context-full', 'QuotaExceededError']
  ]) {
    const error = new BitNetError(code, 'why')
    const session = await create({}, given(echo({ fails: error })))
    await assert.rejects(session.prompt(PROMPT), found => {
      assert.deepEqual([found.name, found.cause, found.message], [name, error, `${code}: why`])
      return found instanceof DOMException
    })
    await fails(textsOf(session.promptStreaming(PROMPT)), name)
    assert.equal(session.contextUsage, 0)
  }
})
