// Tools of a `LanguageModel` without a browser: those that the page runs, those that the session runs, and calls and
// results as messages. The echoing model calls a tool for each `CALL name` in a question.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entry, fails, given, PROMPT, settled, textsOf, wrong } from './drafts.mjs'
import { echo } from './echo.mjs'

const { LanguageModel, LanguageModelToolCall, LanguageModelToolError, LanguageModelToolSuccess } = entry
const OPEN = { expectedInputs: [{ type: 'tool-call' }, { type: 'tool-response' }], expectedOutputs: [{ type: 'tool-call' }] }
const tool = (name, more = {}) => ({ name, description: 'Looks things up.', inputSchema: { type: 'object', properties: {} }, ...more })
const ARGS = { weather: { location: 'Seattle' }, one: { a: 1 } }
const create = (options, model) => {
  given(model ?? echo({ args: ARGS, contextLength: 1000 }))
  return LanguageModel.create(options)
}
const callOf = (callID, name, args) => ({ type: 'tool-call', value: new LanguageModelToolCall({ callID, name, arguments: args }) })
const successOf = (callID, name, ...values) => ({
  type: 'tool-response', value: new LanguageModelToolSuccess({ callID, name, result: values.map(value => ({ type: 'text', value })) })
})
const user = (...content) => [{ role: 'user', content }]
const assistant = (...content) => [{ role: 'assistant', content }]

test('tools that are none reject', async () => {
  const circular = { type: 'object', properties: { a: { type: 'string' } } }
  circular.circular = circular
  for (const inputSchema of [null, undefined, {}, 'none', { properties: {} }, { type: 'string' },
    { type: 'object', properties: 'none' }, { type: 'object', required: 'none' }, circular]) {
    for (const tools of [[tool('one', { inputSchema })], [tool('good'), tool('one', { inputSchema }), tool('also-good')]]) {
      await wrong(create({ ...OPEN, tools }))
      await wrong(LanguageModel.availability({ ...OPEN, tools }))
    }
  }
  await wrong(create({ ...OPEN, tools: [tool('')] }))
  await wrong(create({ ...OPEN, tools: [tool('one', { description: '' })] }))
  await wrong(create({ ...OPEN, tools: [tool('one', { execute: 'me' })] }))
  await wrong(create({ ...OPEN, tools: [tool('one'), tool('one')] }))
  await wrong(create({ ...OPEN, tools: [tool('one'), tool('two', { execute: () => '' })] }))
  await wrong(create({ ...OPEN, tools: [{ name: 'one', inputSchema: { type: 'object' } }] }))
  await wrong(create({ ...OPEN, tools: 'none' }))
  await fails(create({ ...OPEN, tools: [tool('no spaces here')] }), 'NotSupportedError')
})

test('errors of a schema that is read are the page\'s', async () => {
  for (const name of ['type', 'properties', 'toJSON', 'more']) {
    const error = new RangeError(name)
    const inputSchema = { type: 'object', properties: {}, ...(name === 'toJSON' && { toJSON: () => { throw error } }) }
    if (name !== 'toJSON') Object.defineProperty(inputSchema, name, { get: () => { throw error }, enumerable: true })
    await assert.rejects(create({ ...OPEN, tools: [tool('one', { inputSchema })] }), found => found === error, name)
  }
})

test('tools need a session whose outputs may be calls, unless it runs them itself', async () => {
  await wrong(create({ tools: [tool('one')] }))
  await wrong(create({ tools: [tool('one')], expectedOutputs: [{ type: 'text' }] }))
  assert.ok(await create({ tools: [tool('one')], expectedOutputs: [{ type: 'tool-call' }] }))
  assert.ok(await create({ tools: [tool('one', { execute: () => 'x' })] }))
  const description = '{"a": 10,\n // a comment\n}'
  assert.ok(await create({ ...OPEN, tools: [tool('one', { inputSchema: { type: 'object', properties: { a: { description } } } })] }))
})

test('without tools, answers are texts', async () => {
  for (const options of [{}, { tools: [] }, { expectedOutputs: [{ type: 'tool-call' }] }]) {
    assert.equal(await (await create(options)).prompt('Hello CALL one'), 'Hello CALL one')
  }
})

test('calls come to the page, after the text', async () => {
  const session = await create({ ...OPEN, tools: [tool('weather')] })
  const answer = await session.prompt('Look. CALL weather')
  assert.deepEqual(answer.map(({ type }) => type), ['text', 'tool-call'])
  assert.equal(answer[0].value, 'Look. CALL weather')
  const { value } = answer[1]
  assert.ok(value instanceof LanguageModelToolCall)
  assert.deepEqual([value.name, value.arguments, typeof value.callID], ['weather', { location: 'Seattle' }, 'string'])
  assert.equal(await (await create({ ...OPEN, tools: [tool('weather')] })).prompt('No call.'), 'No call.')
  // An answer that is nothing but a call.
  const silent = await create({ ...OPEN, tools: [tool('weather')] }, echo({ says: () => '', args: ARGS }))
  assert.deepEqual((await silent.prompt('CALL weather')).map(({ type }) => type), ['tool-call'])
})

test('several calls of one answer, also of tools without arguments', async () => {
  const tools = ['one', 'two', 'three', 'four'].map(name => tool(name, name === 'two' ? { inputSchema: { type: 'object' } } : {}))
  const session = await create({ ...OPEN, tools })
  const calls = (await session.prompt('CALL one CALL two CALL three CALL four')).filter(({ type }) => type === 'tool-call')
  assert.deepEqual(calls.map(({ value }) => value.name), ['one', 'two', 'three', 'four'])
  assert.deepEqual(calls.map(({ value }) => value.arguments), [{ a: 1 }, {}, {}, {}])
  assert.equal(new Set(calls.map(({ value }) => value.callID)).size, 4)
})

test('streams give content of a type and a value', async () => {
  const session = await create({ ...OPEN, tools: [tool('one'), tool('two')] })
  const chunks = await textsOf(session.promptStreaming('Look. CALL one CALL two'))
  const texts = chunks.filter(({ type }) => type === 'text')
  assert.equal(texts.map(({ value }) => value).join(''), 'Look. CALL one CALL two')
  assert.deepEqual(chunks.slice(texts.length).map(({ type, value }) => [type, value.name]), [['tool-call', 'one'], ['tool-call', 'two']])
})

test('a result goes back as the next prompt', async () => {
  const session = await create({ ...OPEN, tools: [tool('weather')] })
  const [, { value: { callID } }] = await session.prompt('CALL weather')
  const answer = await session.prompt(user(successOf(callID, 'weather', 'It rains.', { wind: [1, 'strong'] }, [2])))
  assert.match(answer, /It rains\.\n\{"wind":\[1,"strong"\]\}\n\[2\]/)
  assert.match(await session.prompt('Bye.'), /Bye/)
})

test('a failure goes back too', async () => {
  const model = given(echo({ args: ARGS, contextLength: 1000 }))
  const session = await LanguageModel.create({ ...OPEN, tools: [tool('weather')] })
  const [, { value: { callID } }] = await session.prompt('CALL weather')
  const value = new LanguageModelToolError({ callID, name: 'weather', errorMessage: 'no network' })
  await session.prompt(user({ type: 'tool-response', value }, { type: 'text', value: 'Go on.' }))
  assert.deepEqual(model.asked.at(-1).messages.slice(-2), [
    { role: 'tool', toolCallId: callID, content: 'Error: no network' }, { role: 'user', content: 'Go on.' }
  ])
})

test('results that are no JSON', async () => {
  const session = await create({ ...OPEN, tools: [tool('one')] })
  const circular = {}
  circular.self = circular
  const results = [circular, () => {}, 12345678901234567890n, Symbol('x'), undefined].map(value => ({ type: 'text', value }))
  for (const part of [...results, { type: 'object', value: new Blob() }, { type: 'object', value: new Date() }]) {
    const value = new LanguageModelToolSuccess({ callID: 'x', name: 'one', result: [part] })
    await fails(session.prompt(user({ type: 'tool-response', value })), 'DataError')
  }
  for (const type of ['image', 'audio']) {
    const value = new LanguageModelToolSuccess({ callID: 'x', name: 'one', result: [{ type: 'text', value: 'Here:' }, { type, value: new Blob() }] })
    await fails(session.prompt(user({ type: 'tool-response', value })), 'NotSupportedError')
  }
})

test('calls and results that a page gives are part of the conversation', async () => {
  const nested = { query: 'weather', filters: { cities: ['Paris', 'Tokyo'], metric: true } }
  const initialPrompts = assistant(callOf('a', 'one', nested), callOf('b', 'one', {}), callOf('c', 'one', undefined), { type: 'tool-call', value: new LanguageModelToolCall({ callID: 'd', name: 'one' }) })
  const model = given(echo({ contextLength: 1000 }))
  const session = await LanguageModel.create({ ...OPEN, tools: [tool('one')], initialPrompts })
  await session.append([...assistant(callOf('e', 'one', { q: 1 })), ...user(successOf('e', 'one', 'found'))])
  await session.prompt('Continue')
  assert.deepEqual(model.warmed, [], 'the tools are part of the prompt')
  const [first, second, result] = model.asked.at(-1).messages
  assert.deepEqual(first.toolCalls.map(({ id, arguments: args }) => [id, args]), [['a', nested], ['b', {}], ['c', {}], ['d', {}]])
  assert.deepEqual(second, { role: 'assistant', content: '', toolCalls: [{ id: 'e', name: 'one', arguments: { q: 1 } }] })
  assert.deepEqual(result, { role: 'tool', toolCallId: 'e', content: 'found' })
})

test('calls and results that are wrong, or that the session does not take', async () => {
  const session = await create({ ...OPEN, tools: [tool('one')] })
  const circular = {}
  circular.self = circular
  for (const args of [[], circular, 'text']) await fails(session.prompt(assistant(callOf('x', 'one', args))), 'DataError')
  await wrong(session.prompt(user(callOf('x', 'one', {}))))
  await wrong(session.prompt(assistant(successOf('x', 'one', 'y'))))
  await wrong(session.prompt(assistant({ type: 'tool-call', value: 'one' })))
  await wrong(session.prompt(user({ type: 'tool-response', value: { callID: 'x' } })))
  const other = await create({ expectedOutputs: [{ type: 'tool-call' }], tools: [tool('one')] })
  await fails(other.prompt(assistant(callOf('x', 'one', {}))), 'NotSupportedError')
  await fails(other.prompt(user(successOf('x', 'one', 'y'))), 'NotSupportedError')
  for (const make of [
    () => new LanguageModelToolCall({ name: 'one' }), () => new LanguageModelToolSuccess({ callID: 'x', name: 'one' }),
    () => new LanguageModelToolError({ callID: 'x', name: 'one' }), () => new LanguageModelToolSuccess({ callID: 'x', name: 'one', result: [{ type: 'soup' }] })
  ]) assert.throws(make, TypeError)
})

test('a clone has the tools', async () => {
  const copy = await (await create({ ...OPEN, tools: [tool('one')] })).clone()
  assert.equal((await copy.prompt('CALL one')).at(-1).value.name, 'one')
})

test('tools with `execute` are run by the session, and the answer is a text', async () => {
  const model = given(echo({ args: ARGS, contextLength: 1000, says: messages => messages.at(-1).role === 'tool' ? 'It rains.' : 'Wait. ' }))
  const seen = []
  const execute = async args => {
    seen.push(args)
    return { rain: true }
  }
  const session = await LanguageModel.create({ tools: [tool('weather', { execute }), tool('bad', { execute: () => { throw new Error('out of order') } })] })
  assert.equal(await session.prompt('CALL weather CALL weather CALL bad'), 'Wait. It rains.')
  assert.deepEqual(seen, [{ location: 'Seattle' }, { location: 'Seattle' }])
  const results = model.asked.at(-1).messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  assert.deepEqual(results, ['{"rain":true}', '{"rain":true}', 'Error: out of order'])
  const chunks = await textsOf(session.promptStreaming('CALL weather'))
  assert.equal(chunks.join(''), 'Wait. It rains.')
  // The calls and their results have become part of the conversation.
  await session.prompt('Bye.')
  assert.equal(model.asked.at(-1).messages.filter(({ role }) => role === 'tool').length, 4)
})

test('an answer without words is left out of the conversation, also after tools', async () => {
  const model = given(echo({ contextLength: 1000, says: () => '' }))
  const session = await LanguageModel.create({ tools: [tool('one', { execute: () => 'x' })] })
  assert.equal(await session.prompt('CALL one'), '')
  await session.prompt('Bye.')
  assert.deepEqual(model.asked.at(-1).messages.slice(0, 4).map(({ role }) => role), ['user', 'assistant', 'tool', 'user'])
})

test('a stream that is left as it ends throws nothing', async () => {
  // An uncaught error fails the test.
  for (const leave of [({ reader }) => reader.cancel(), ({ stop }) => stop.abort(), ({ session }) => session.destroy()]) {
    for (let turns = 0; turns < 12; turns++) {
      const session = await create({ ...OPEN, tools: [tool('one')] })
      const stop = new AbortController()
      const reader = session.promptStreaming('CALL one', { signal: stop.signal }).getReader()
      while (typeof (await reader.read()).value.value === 'string');
      for (let n = 0; n < turns; n++) await undefined
      const closed = reader.closed.catch(() => {})
      await leave({ reader, stop, session })
      await closed
      await settled()
    }
  }
})

test('an abort ends a session\'s tools', async () => {
  const stop = new AbortController()
  let signalled
  const execute = () => new Promise(resolve => { signalled = resolve })
  const session = await create({ tools: [tool('one', { execute })] })
  const { contextUsage } = session
  const running = session.prompt('CALL one', { signal: stop.signal })
  while (!signalled) await new Promise(setImmediate)
  stop.abort()
  await fails(running, 'AbortError')
  assert.equal(session.contextUsage, contextUsage)
})

test('an answer in a format, and one that is begun, calls no tools', async () => {
  const session = await create({ ...OPEN, tools: [tool('one')] })
  assert.equal(await session.prompt('CALL one', { responseConstraint: /yes|no/ }), 'no')
  assert.equal(typeof await session.prompt([...user({ type: 'text', value: 'CALL one' }), { role: 'assistant', content: 'Hm', prefix: true }]), 'string')
})

test('results stay with their calls when turns are evicted', async () => {
  const model = given(echo({ args: ARGS, contextLength: 100, says: () => 'ok' }))
  const session = await LanguageModel.create({ ...OPEN, tools: [tool('one')] })
  await session.prompt(`${PROMPT} `.repeat(4))
  const [, { value: { callID } }] = await session.prompt('CALL one')
  await session.prompt(user(successOf(callID, 'one', 'y '.repeat(70))))
  assert.deepEqual(model.asked.at(-1).messages.map(({ role }) => role), ['user', 'assistant', 'tool'])
})

test('a result is measured without its call, and one that is too long says so', async () => {
  const model = given(echo({ args: ARGS }))
  const session = await LanguageModel.create({ ...OPEN, tools: [tool('weather')] })
  const [, { value: { callID } }] = await session.prompt('CALL weather')
  const { contextUsage, contextWindow } = session
  const short = user(successOf(callID, 'weather', 'It rains.'))
  assert.equal(await session.measureContextUsage(short), 4, 'two words, and those around a message')
  await session.append(short)
  assert.equal(session.contextUsage, contextUsage + 4)
  // A result of a call that nothing has made is refused, as the model refuses it.
  await fails(session.prompt(user(successOf('other', 'weather', 'It rains.'))), 'NotSupportedError', /no call/)
  const again = await session.prompt('CALL weather')
  const long = user(successOf(again.at(-1).value.callID, 'weather', 'rain '.repeat(300)))
  const expected = { name: 'QuotaExceededError', requested: await session.measureContextUsage(long), quota: contextWindow }
  const { length } = model.asked
  await assert.rejects(session.prompt(long), expected)
  await assert.rejects(session.append(long), expected)
  assert.equal(model.asked.length, length)
})

test('tools count from the beginning, and may be too many', async () => {
  const tools = Array.from({ length: 9 }, (_, n) => tool(`tool-${n}`))
  const session = await create({ ...OPEN, tools })
  assert.equal(session.contextUsage, 9)
  const asked = await session.measureContextUsage('hello')
  await session.append('hello')
  assert.equal(session.contextUsage, 9 + asked)
  await assert.rejects(create({ ...OPEN, tools }, echo({ contextLength: 9 })), { name: 'QuotaExceededError', requested: 9, quota: 9 })
})

test('an answer of calls alone counts little more than its calls', async () => {
  const session = await create({ ...OPEN, tools: [tool('weather')] }, echo({ says: () => '', args: ARGS }))
  await session.prompt('CALL weather')
  // The tool, the question, and a message of a call with one word.
  assert.equal(session.contextUsage, 1 + (2 + 2) + (2 + 1 + 1))
})
