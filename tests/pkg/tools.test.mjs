// Tools without a browser, with models that are made by hand: the loop, calls in parts, and chats with calls.
// tests/web/tools.spec.ts has them with a real model.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const load = name => import(new URL(`../../pkg/${name}.js`, import.meta.url))
const { runTools } = await load('page/tools')
const { portableOptions } = await load('page/format')
const { Chat } = await load('page/chat')
const { readNote } = await load('page/note')
const { Generation } = await load('generation')
const { BitNetError } = await load('error')

const restored = (model, note) => Chat.restored(model, readNote(note))

/** The parts of a call, its arguments in two of them. */
const call = (index, name, args, ends = true) => {
  const text = JSON.stringify(args)
  return [
    { text: '', channel: 'call', call: { index, id: `${name} ${index}`, name } },
    { id: 7, text: text.slice(0, 2), channel: 'call', call: { index } },
    { id: 8, text: text.slice(2), channel: 'call', call: { index } },
    ...ends ? [{ text: '', channel: 'call', call: { index, ends } }] : []
  ]
}

/** A model that gives these answers, one after the other: texts, or tokens. `asked` has what it was asked. */
const modelOf = (...answers) => {
  const model = { asked: [] }
  model.generate = (input, { signal, ...options }) => {
    model.asked.push({ input: structuredClone(input), options })
    return new Generation(start(answers[model.asked.length - 1]), signal)
  }
  return model
}
const start = answer => async onToken => {
  const tokens = [answer].flat(2).map(said => typeof said === 'string' ? { text: said, channel: 'answer' } : said)
  tokens.forEach(onToken)
  const isCut = tokens.at(-1).call && !tokens.at(-1).call.ends
  const finishReason = tokens.some(({ call }) => call) ? 'tool-calls' : 'stop'
  return { finishReason: isCut ? 'length' : finishReason }
}
const codes = code => error => error instanceof BitNetError && error.code === code

test('tools are run until an answer calls none', async () => {
  const model = modelOf(['Let me see.', call(0, 'add', { a: 1, b: 2 }), call(1, 'now', {})], 'It is 3.')
  const tools = {
    add: { description: 'Adds.', parameters: { type: 'object' }, execute: async ({ a, b }, { id }) => ({ sum: a + b, id }) },
    now: { execute: () => {} }
  }
  const seen = []
  const run = await runTools(model, { messages: 'How much?', tools, toolChoice: 'required', temperature: 1, onAnswer: one => seen.push(one) })
  const toolCalls = [{ id: 'add 0', name: 'add', arguments: { a: 1, b: 2 } }, { id: 'now 1', name: 'now', arguments: {} }]
  const messages = [
    { role: 'user', content: 'How much?' },
    { role: 'assistant', content: 'Let me see.', toolCalls },
    { role: 'tool', content: '{"sum":3,"id":"add 0"}', toolCallId: 'add 0' },
    { role: 'tool', content: '', toolCallId: 'now 1' },
    { role: 'assistant', content: 'It is 3.' }
  ]
  assert.equal(run.text, 'It is 3.')
  assert.deepEqual(run.messages, messages)
  assert.deepEqual(run.stats.map(({ finishReason }) => finishReason), ['tool-calls', 'stop'])
  assert.equal(seen.length, 2)
  // An answer has its calls too.
  const parts = []
  for await (const { call } of seen[0].tokens()) if (call?.name) parts.push(call.name)
  assert.deepEqual(parts, ['add', 'now'])
  assert.deepEqual(model.asked.map(({ input }) => input), [messages.slice(0, 1), messages.slice(0, 4)])
  assert.deepEqual(model.asked.map(({ options: { toolChoice } }) => toolChoice), ['required', 'auto'])
  // The functions stay in the page.
  const given = [{ description: 'Adds.', parameters: { type: 'object' }, name: 'add' }, { name: 'now' }]
  for (const { options } of model.asked) assert.deepEqual([options.tools, options.temperature], [given, 1])
})

test('the last answer has no tools', async () => {
  const model = modelOf(call(0, 'f', {}), call(0, 'f', {}), 'So.')
  const options = { messages: [{ role: 'user', content: 'x' }], tools: { f: { execute: () => 'y' } }, parallelToolCalls: false }
  const { messages } = await runTools(model, { ...options, maxSteps: 3 })
  assert.equal(messages.length, 6)
  assert.deepEqual(model.asked.map(({ options }) => Object.keys(options)), [
    ['parallelToolCalls', 'tools', 'toolChoice'], ['parallelToolCalls', 'tools', 'toolChoice'], []
  ])
})

test('what a tool throws goes to the model, and to the caller if asked', async () => {
  const tools = { f: { execute: () => { throw new Error('no city') } } }
  const answers = [call(0, 'f', {}), 'Sorry.']
  const { messages } = await runTools(modelOf(...answers), { messages: 'x', tools })
  assert.equal(messages[2].content, 'Error: no city')
  const told = []
  await runTools(modelOf(...answers), { messages: 'x', tools, onError: (error, { name }) => told.push([error.message, name]) })
  assert.deepEqual(told, [['no city', 'f']])
  const why = new Error('enough')
  await assert.rejects(runTools(modelOf(...answers), { messages: 'x', tools, onError: () => { throw why } }), why)
  const abort = new AbortController()
  const aborting = { f: { execute: () => { abort.abort(why); throw new Error('late') } } }
  await assert.rejects(runTools(modelOf(...answers), { messages: 'x', tools: aborting, signal: abort.signal }), why)
  const later = new AbortController()
  const endless = { f: { execute: () => { setTimeout(() => later.abort(why)); return new Promise(() => {}) } } }
  await assert.rejects(runTools(modelOf(...answers), { messages: 'x', tools: endless, signal: later.signal }), why)
  for (const [thrown, said] of [[Symbol('odd'), 'Symbol(odd)'], [Object.create(null), 'unknown']]) {
    const odd = { f: { execute: () => { throw thrown } } }
    const { messages } = await runTools(modelOf(...answers), { messages: 'x', tools: odd })
    assert.equal(messages.find(({ role }) => role === 'tool').content, `Error: ${said}`)
  }
  const onAnswer = () => { throw why }
  await assert.rejects(runTools(modelOf(...answers), { messages: 'x', tools: endless, onAnswer }), why)
  // The other calls of the answer are told.
  const signals = []
  const twice = modelOf([call(0, 'f', {}), call(1, 'g', {})], 'Sorry.')
  const g = { execute: (_, { signal }) => { signals.push(signal); return new Promise(() => {}) } }
  const onError = () => { throw why }
  await assert.rejects(runTools(twice, { messages: 'x', tools: { ...tools, g }, onError }), why)
  assert.deepEqual(signals.map(({ reason }) => reason), [why])
  // Nor does it wait for a text.
  const run = (_, stop) => new Promise(resolve => stop.addEventListener('abort', () => resolve({ finishReason: 'abort' })))
  const silent = { generate: () => new Generation(run) }
  await assert.rejects(runTools(silent, { messages: 'x', tools: endless, onAnswer }), why)
})

test('a call that is cut off is incomplete', async () => {
  const tools = { f: { execute: () => '' } }
  await assert.rejects(runTools(modelOf(call(0, 'f', {}, false)), { messages: 'x', tools }), codes('incomplete'))
  const whole = new Generation(start(['a', call(0, 'f', { b: 1 })]))
  assert.deepEqual(await whole.toolCalls(), [{ id: 'f 0', name: 'f', arguments: { b: 1 } }])
  assert.equal(await whole.text(), 'a')
  assert.deepEqual(await new Generation(start('a')).toolCalls(), [])
})

test('wrong options of the loop are refused', async () => {
  const tools = { f: { execute: () => '' } }
  for (const [options, said] of [
    [undefined, /options/], [{ messages: 'x' }, /`tools`/], [{ messages: 'x', tools: [] }, /`tools`/],
    [{ messages: 'x', tools: { f: {} } }, /`tools\.f\.execute`/], [{ messages: 'x', tools: { f: null } }, /`tools\.f\.execute`/],
    [{ messages: 'x', tools, maxSteps: 0 }, /`maxSteps`/], [{ messages: 'x', tools, maxSteps: 'many' }, /`maxSteps`/],
    [{ messages: 'x', tools, maxSteps: 1, toolChoice: 'required' }, /`maxSteps`/], [{ messages: 'x', tools, toolChoice: 'none' }, /`toolChoice`/], [{ messages: 'x', tools, onError: 5 }, /`onError`/],
    [{ messages: 5, tools }, /`messages`/]
  ]) {
    await assert.rejects(runTools(modelOf('y'), options), error => codes('bad-option')(error) && said.test(error.message))
  }
})

test('schemas of tools become texts, those of other libraries too', () => {
  const zod = { '~standard': { jsonSchema: { input: ({ target }) => ({ type: 'object', target }) } } }
  const tools = [{ name: 'a', description: 'b', parameters: { type: 'object' } }, { name: 'c', parameters: zod }, { name: 'd' }]
  assert.deepEqual(portableOptions({ tools, toolChoice: 'auto', seed: 1 }), {
    tools: [
      { name: 'a', description: 'b', parameters: '{"type":"object"}' },
      { name: 'c', parameters: '{"type":"object","target":"draft-2020-12"}' }, { name: 'd' }
    ],
    toolChoice: 'auto', seed: 1
  })
  // A format and tools that are not called do not exclude each other.
  const responseFormat = { type: 'json_object' }
  const given = portableOptions({ tools: [{ name: 'd' }], toolChoice: 'none', responseFormat })
  assert.deepEqual(given, { tools: [{ name: 'd' }], toolChoice: 'none', responseFormat: { kind: 'json_object', text: '' } })
  for (const toolChoice of [undefined, 'auto', 'required']) {
    const both = { tools: [{ name: 'd' }], toolChoice, responseFormat }
    assert.throws(() => portableOptions(both), error => codes('bad-option')(error) && /responseFormat/.test(error.message))
  }
})

test('a chat keeps calls and their results', async () => {
  const seen = []
  const answers = [['Hm.', call(0, 'f', { a: 1 })], 'Yes.', call(0, 'f', {}, false), call(0, 'f', {})]
  const model = {
    start: input => async onToken => {
      seen.push(await input())
      return start(answers[seen.length - 1])(onToken)
    },
    save: async (messages, note) => note
  }
  const chat = new Chat(model, [])
  const [{ id }] = await chat.send('x').toolCalls()
  const result = { role: 'tool', content: 'r', toolCallId: id }
  await chat.send([result]).text()
  const called = { role: 'assistant', content: 'Hm.', toolCalls: [{ id, name: 'f', arguments: { a: 1 } }] }
  const said = [{ role: 'user', content: 'x' }, called, result, { role: 'assistant', content: 'Yes.' }]
  assert.deepEqual(chat.messages, said)
  assert.deepEqual(seen[1], said.slice(0, 3))
  // A call that is cut off is no answer.
  await chat.send('y').stats
  assert.deepEqual(chat.messages, said)
  assert.deepEqual(restored(model, await chat.save()).messages, said)
  // An answer may have no text.
  await chat.send('z').stats
  assert.deepEqual(chat.messages.at(-1), { role: 'assistant', content: '', toolCalls: [{ id: 'f 0', name: 'f', arguments: {} }] })
  for (const wrong of [5, [], [{ role: 'user', content: 'x' }], [null]]) assert.throws(() => chat.send(wrong), codes('bad-option'))
})

/** A chat after two calls, whose model gives these answers. `said` is what it has in short, `seen` what the model saw last. */
const afterCalls = (answers, ...more) => {
  const toolCalls = ['1', '2'].map(id => ({ id, name: 'f', arguments: {} }))
  const result = id => ({ role: 'tool', content: `r${id}`, toolCallId: id })
  const before = [{ role: 'user', content: 'q' }, { role: 'assistant', content: '', toolCalls }, ...more]
  const inShort = messages => messages.map(({ content, toolCallId = '' }) => toolCallId + content).join(' | ')
  const told = { seen: '' }
  const model = {
    start: input => async onToken => {
      told.seen = inShort(await input())
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      return start(answer)(onToken)
    }
  }
  const chat = new Chat(model, before)
  return { chat, results: [result('1'), result('2')], said: () => inShort(chat.messages), told }
}

test('of several results one is edited, and the others stay', async () => {
  const { chat, results, said, told } = afterCalls(['A', 'B', 'C', new Error('lost'), 'D'])
  await chat.send(results).text()
  assert.equal(said(), 'q |  | 1r1 | 2r2 | A')
  await chat.send('more').text()
  assert.equal(await chat.edit(2, 'x').text(), 'C')
  assert.deepEqual([told.seen, said()], ['q |  | 1x | 2r2', 'q |  | 1x | 2r2 | C'])
  await assert.rejects(chat.edit(3, 'y').text(), /lost/)
  assert.equal(said(), 'q |  | 1x | 2r2 | C')
  await chat.regenerate().text()
  assert.deepEqual([told.seen, said()], ['q |  | 1x | 2r2', 'q |  | 1x | 2r2 | D'])
})

test('an answer that has called tools does not go on', async () => {
  const { chat } = afterCalls([])
  assert.throws(() => chat.continue(), error => codes('bad-option')(error) && /results/.test(error.message))
  const { chat: asking } = afterCalls([call(0, 'f', {})], { role: 'tool', content: 'r' }, { role: 'tool', content: 's' })
  const turns = [asking.send('again'), asking.continue()]
  await turns[0].text()
  await assert.rejects(turns[1].text(), error => codes('bad-option')(error) && /results/.test(error.message))
  assert.equal(asking.messages.at(-1).toolCalls.length, 1)
})

test('an answer that the model ends at once is kept, and what was sent with it', async () => {
  const none = { text: '', channel: 'answer' }
  const { chat, results, said } = afterCalls([[none], [none], new Error('lost'), call(0, 'f', {}, false)])
  await chat.send(results).text()
  assert.equal(said(), 'q |  | 1r1 | 2r2 | ')
  await chat.send('x').text()
  assert.equal(said(), 'q |  | 1r1 | 2r2 |  | x | ')
  await assert.rejects(chat.send('y').text(), /lost/)
  await chat.send('z').text()
  assert.equal(said(), 'q |  | 1r1 | 2r2 |  | x | ')
})

test('calls that are no JSON are refused with their message', () => {
  const cyclic = {}
  cyclic.self = cyclic
  for (const value of [cyclic, { n: 5n }]) {
    const calling = { role: 'assistant', content: '', toolCalls: [{ id: '1', name: 'f', arguments: value }] }
    const refused = error => codes('bad-option')(error) && /`messages\[1\]\.toolCalls`/.test(error.message)
    assert.throws(() => new Chat({}, [{ role: 'user', content: 'q' }, calling]), refused)
  }
})
