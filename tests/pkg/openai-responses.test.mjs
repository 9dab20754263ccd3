// The npm package `openai` asks for responses, without a browser: a model that is made by hand
// answers. tests/web/openai.spec.ts asks a real one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI from 'openai'
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { ENDLESS, load, modelOf, post, refuses, stopped } from './answerer.mjs'
import { fits, made } from './grammars.mjs'

const { readResponseRequest } = await load('openai/responses-request')
const { answer, createResponse } = await load('openai/server')
const { BitNetError } = await load('error')
const { portableOptions } = await load('page/format')

const clientOf = model => new OpenAI({ fetch: (input, init) => answer(model, input, init), apiKey: '-', maxRetries: 0 })
const hello = { model: 'any', input: 'Hello' }
const read = body => readResponseRequest({ ...hello, ...body })
const reasoning = text => ({ text, channel: 'reasoning' })
const THOUGHTFUL = [reasoning('Hm'), reasoning(''), reasoning('.'), 'Hi', '', '!']

test('a response has OpenAI\'s form, and repeats what was asked', async () => {
  const model = modelOf(['Hi', '!'])
  const metadata = { page: 'one' }
  const found = await clientOf(model).responses.create({
    ...hello, instructions: 'Be kind', max_output_tokens: 9, temperature: 0, top_p: 0.5, metadata, store: false, user: 'me'
  })
  const { id, created_at: created, output: [{ id: item }], ...rest } = found
  assert.match(id, /^resp_\w+$/)
  assert.match(item, /^msg_\w+$/)
  assert.ok(Math.abs(created - Date.now() / 1000) < 3600)
  const text = { type: 'output_text', text: 'Hi!', annotations: [], logprobs: [] }
  assert.deepEqual(found.output, [{ id: item, type: 'message', role: 'assistant', status: 'completed', content: [text] }])
  const { output: _, ...about } = rest
  assert.deepEqual(about, {
    object: 'response', model: 'any', status: 'completed', incomplete_details: null, output_text: 'Hi!',
    usage: {
      input_tokens: 5, input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
      output_tokens: 3, output_tokens_details: { reasoning_tokens: 1 }, total_tokens: 8
    },
    instructions: 'Be kind', max_output_tokens: 9, metadata, reasoning: { effort: null, summary: null },
    temperature: 0, text: { format: { type: 'text' } }, top_logprobs: 0, top_p: 0.5,
    access_programs: null, background: false, error: null, parallel_tool_calls: true, previous_response_id: null,
    store: false, tool_choice: 'auto', tools: [], truncation: 'disabled'
  })
  assert.deepEqual(model.asked, [{
    input: [{ role: 'system', content: 'Be kind' }, { role: 'user', content: 'Hello' }],
    options: { temperature: 0, topP: 0.5, maxTokens: 9 }
  }])
  const { model: named, metadata: none } = await createResponse(model, { input: 'Hello' })
  assert.deepEqual([named, none], ['tiny', {}])
})

test('an earlier output is part of the input, but for its reasoning', async () => {
  const model = modelOf(THOUGHTFUL)
  const client = clientOf(model)
  const input = [
    { role: 'developer', content: 'Be kind' },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'one' }, { type: 'input_text', text: 'two' }] }
  ]
  const { output } = await client.responses.create({ model: 'any', input })
  assert.deepEqual(output.map(({ type }) => type), ['reasoning', 'message'])
  await client.responses.create({ model: 'any', input: [...input, ...output, { role: 'user', content: 'And?' }] })
  const before = [{ role: 'system', content: 'Be kind' }, { role: 'user', content: 'one\ntwo' }]
  assert.deepEqual(model.asked.map(({ input }) => input), [
    before, [...before, { role: 'assistant', content: 'Hi!' }, { role: 'user', content: 'And?' }]
  ])
})

test('the events of a stream are OpenAI\'s, in order, and the client makes the response of them', async () => {
  const client = clientOf(modelOf(THOUGHTFUL))
  const events = []
  for await (const event of await client.responses.create({ ...hello, stream: true })) events.push(event)
  assert.deepEqual(events.map(({ sequence_number: number }) => number), [...events.keys()])
  const last = events.at(-1).response
  const [thought, said] = last.output
  const at = (index, fields) => ({ item_id: last.output[index].id, output_index: index, content_index: 0, ...fields })
  const part = text => ({ type: 'output_text', text, annotations: [], logprobs: [] })
  const hm = text => ({ type: 'reasoning_text', text })
  assert.deepEqual(events.map(({ type, sequence_number: _, response, ...event }) => [type, response?.status ?? event]), [
    ['response.created', 'in_progress'],
    ['response.in_progress', 'in_progress'],
    ['response.output_item.added', { output_index: 0, item: { ...thought, status: 'in_progress', content: [] } }],
    ['response.content_part.added', at(0, { part: hm('') })],
    ['response.reasoning_text.delta', at(0, { delta: 'Hm' })],
    ['response.reasoning_text.delta', at(0, { delta: '.' })],
    ['response.reasoning_text.done', at(0, { text: 'Hm.' })],
    ['response.content_part.done', at(0, { part: hm('Hm.') })],
    ['response.output_item.done', { output_index: 0, item: thought }],
    ['response.output_item.added', { output_index: 1, item: { ...said, status: 'in_progress', content: [] } }],
    ['response.content_part.added', at(1, { part: part('') })],
    ['response.output_text.delta', at(1, { delta: 'Hi', logprobs: [] })],
    ['response.output_text.delta', at(1, { delta: '!', logprobs: [] })],
    ['response.output_text.done', at(1, { text: 'Hi!', logprobs: [] })],
    ['response.content_part.done', at(1, { part: part('Hi!') })],
    ['response.output_item.done', { output_index: 1, item: said }],
    ['response.completed', 'completed']
  ])
  assert.deepEqual([thought.content, thought.status, said.content, said.status], [[hm('Hm.')], 'completed', [part('Hi!')], 'completed'])
  const { usage: _, ...unfinished } = last
  assert.deepEqual(events[0].response, { ...unfinished, status: 'in_progress', output: [], output_text: '' })

  const stream = client.responses.stream(hello)
  const snapshots = []
  stream.on('response.output_text.delta', ({ snapshot }) => snapshots.push(snapshot))
  const { output_text: text, status, usage } = await stream.finalResponse()
  assert.deepEqual([text, status, usage.output_tokens, snapshots], ['Hi!', 'completed', 3, ['Hi', 'Hi!']])

  const raw = await (await answer(modelOf(['Hi']), 'https://host/v1/responses', post({ input: 'a', stream: true }))).text()
  const named = raw.split('\n\n').filter(Boolean).map(event => /^event: (\S+)\ndata: (.*)$/.exec(event).slice(1))
  assert.deepEqual(named.map(([name]) => name), named.map(([, data]) => JSON.parse(data).type))
  assert.equal(named.at(-1)[0], 'response.completed')
})

test('an answer that has the most tokens is incomplete, and there may be none after the reasoning', async () => {
  const ended = { finishReason: 'length' }
  const of = async texts => {
    const client = clientOf(modelOf(texts, ended))
    const whole = await client.responses.create(hello)
    assert.equal((await client.responses.stream(hello).finalResponse()).status, 'incomplete')
    const { status, incomplete_details: details, output } = whole
    assert.deepEqual([status, details], ['incomplete', { reason: 'max_output_tokens' }])
    return output.map(({ type, status, content: [{ text }] }) => [type, status, text])
  }
  assert.deepEqual(await of(['Hi']), [['message', 'incomplete', 'Hi']])
  assert.deepEqual(await of([reasoning('Hm')]), [['reasoning', 'incomplete', 'Hm']])
  assert.deepEqual(await of([reasoning('Hm'), 'Hi']), [['reasoning', 'completed', 'Hm'], ['message', 'incomplete', 'Hi']])
  assert.deepEqual(await of([]), [['message', 'incomplete', '']])
  const silent = await clientOf(modelOf([reasoning('Hm')])).responses.create(hello)
  assert.deepEqual(silent.output.map(({ type, status }) => [type, status]), [['reasoning', 'completed'], ['message', 'completed']])
})

test('the client\'s zod helpers ask for a schema, and parse the answer', async () => {
  const Point = z.object({ x: z.number(), name: z.string().nullable() })
  const model = modelOf(['{"x":1,', '"name":null}'])
  const client = clientOf(model)
  const format = zodTextFormat(Point, 'point')
  const { output_parsed: parsed, text } = await client.responses.parse({ ...hello, text: { format, verbosity: 'low' } })
  assert.deepEqual(parsed, { x: 1, name: null })
  assert.deepEqual(text.format, JSON.parse(JSON.stringify(format)))
  const streamed = await client.responses.stream({ ...hello, text: { format } }).finalResponse()
  assert.deepEqual(streamed.output_parsed, parsed)

  const messages = [{ role: 'user', content: 'Hello' }]
  const { choices: [{ message }] } = await client.chat.completions.parse({ model: 'any', messages, response_format: zodResponseFormat(Point, 'point') })
  assert.deepEqual(message.parsed, parsed)

  const [first, ...others] = model.asked.map(({ options }) => options.responseFormat)
  assert.equal(first.type, 'json_schema')
  assert.deepEqual(first.schema.required, ['x', 'name'])
  assert.deepEqual(others, [first, first])
})

test('what the client\'s zod helpers print is a grammar of answers that they parse', async () => {
  const formats = await made()
  const tree = z.object({ value: z.int(), get next() { return tree.nullable() } })
  for (const [schema, right, wrong] of [
    [z.object({ a: z.number(), b: z.string().nullable() }), { a: 1.5, b: null }, { a: 1.5 }],
    [z.object({ a: z.string().nullable().optional() }), { a: null }, { a: 1 }],
    [z.object({ a: z.union([z.literal('x'), z.object({ b: z.boolean() })]) }), { a: { b: true } }, { a: 'y' }],
    [z.object({ tree }), { tree: { value: 1, next: { value: 2, next: null } } }, { tree: { value: 1 } }]
  ]) {
    const model = modelOf([JSON.stringify(right)])
    const messages = [{ role: 'user', content: 'Hello' }]
    const asked = { model: 'any', messages, response_format: zodResponseFormat(schema, 'it') }
    const { choices: [{ message }] } = await clientOf(model).chat.completions.parse(asked)
    assert.deepEqual(message.parsed, right)
    const { grammar, release } = formats.hold(portableOptions(model.asked[0].options).responseFormat)
    assert.ok(fits(grammar, JSON.stringify(right)), JSON.stringify(right))
    assert.ok(!fits(grammar, JSON.stringify(wrong)), JSON.stringify(wrong))
    release()
  }
})

test('parameters become options of a generation', () => {
  const plain = { temperature: 1 }
  assert.deepEqual(read({}).options, plain)
  const asked = (text, more) => assert.deepEqual(read(text).options, { ...plain, ...more })
  asked({ text: { format: { type: 'json_object' } } }, { responseFormat: { type: 'json_object' } })
  asked({ text: { format: { type: 'json_schema', name: 'a' } } }, { responseFormat: { type: 'json_schema', schema: true } })
  asked({ text: { format: { type: 'text' } } }, {})
  asked({ text: { format: null } }, {})
  asked({ reasoning: { effort: 'none' } }, { thinking: false })
  asked({ reasoning: { effort: 'low', summary: 'auto' } }, { thinking: true })
  asked({ seed: 7, stop: 'x', top_k: 40, presence_penalty: 1 }, { seed: 7, stop: ['x'], topK: 40, presencePenalty: 1 })
  asked({ include: ['message.output_text.logprobs'] }, { logprobs: 0 })
  asked({ include: ['message.output_text.logprobs'], top_logprobs: 2 }, { logprobs: 2 })
  asked({ include: ['reasoning.encrypted_content'], top_logprobs: 0 }, {})
  const nothing = {
    background: false, context_management: [], conversation: null, previous_response_id: null, store: false, tools: [],
    tool_choice: 'auto', truncation: 'disabled', stream: false, instructions: null, metadata: null, include: [],
    service_tier: 'auto', safety_identifier: 'me', prompt_cache_key: 'a', parallel_tool_calls: false, max_tool_calls: 3
  }
  asked(nothing, {})
  const tools = [{ type: 'function', name: 'f', parameters: { properties: { a: {} } }, strict: true }, { type: 'function', name: 'g', parameters: null }]
  const described = [{ name: 'f', parameters: { type: 'object', properties: { a: {} } } }, { name: 'g' }]
  asked({ tools }, { tools: described })
  const choice = { tool_choice: { type: 'function', name: 'g' }, parallel_tool_calls: false }
  asked({ tools, ...choice }, { tools: described, toolChoice: { name: 'g' }, parallelToolCalls: false })
  asked({ tools, tool_choice: 'none', text: { format: { type: 'json_object' } } }, { responseFormat: { type: 'json_object' } })
})

test('what is kept nowhere and what is not supported is refused, with a way to do without', () => {
  const kept = /not kept here/
  for (const [param, value, said] of [
    ['store', true, kept], ['previous_response_id', 'resp_1', /'input'/], ['conversation', 'conv_1', kept], ['background', true, /stream/i],
    ['prompt', { id: 'pmpt_1' }, /'instructions'/], ['truncation', 'auto', /fewer/], ['context_management', [{ type: 'compaction' }], /fewer/],
    ['moderation', {}, /./]
  ]) refuses(() => read({ [param]: value }), 'unsupported_parameter', param, said)
  for (const param of ['messages', 'max_tokens', 'max_completion_tokens', 'n', 'reasoning_effort', 'response_format', 'logprobs', 'constructor']) {
    refuses(() => read({ [param]: 1 }), 'unknown_parameter', param)
  }
  refuses(() => read({ text: { style: 'plain' } }), 'unknown_parameter', 'text.style')
  refuses(() => read({ reasoning: { amount: 1 } }), 'unknown_parameter', 'reasoning.amount')
})

test('wrong values are refused, each by its name', () => {
  for (const body of [null, 'text', []]) refuses(() => readResponseRequest(body), 'invalid_type', null, /JSON object/)
  refuses(() => readResponseRequest({}), 'missing_required_parameter', 'input')
  for (const [param, value] of [
    ['input', 7], ['instructions', ['a']], ['metadata', 'a'], ['text', 'a'], ['reasoning', 'low'], ['include', 'a'], ['model', 7],
    ['temperature', '1'], ['stream', 1]
  ]) refuses(() => read({ [param]: value }), 'invalid_type', param)
  for (const [param, value] of [['temperature', 2.1], ['max_output_tokens', 0], ['top_logprobs', 21]]) {
    refuses(() => read({ [param]: value }), 'invalid_value', param)
  }
  refuses(() => read({ metadata: { a: 1 } }), 'invalid_type', 'metadata.a')
  refuses(() => read({ include: ['all'] }), 'invalid_value', 'include[0]')
  refuses(() => read({ reasoning: { effort: 'much' } }), 'invalid_value', 'reasoning.effort')
  refuses(() => read({ text: { format: { type: 'xml' } } }), 'invalid_value', 'text.format.type')
  refuses(() => read({ text: { format: { type: 'json_schema', schema: {} } } }), 'missing_required_parameter', 'text.format.name')
  refuses(() => read({ text: { format: { type: 'json_schema', name: 'a', schema: 'b' } } }), 'invalid_type', 'text.format.schema')
  refuses(() => read({ stream_options: {} }), 'invalid_parameter_combination', 'stream_options')

  refuses(() => read({ input: [] }), 'empty_array', 'input')
  refuses(() => read({ input: [{ type: 'reasoning', summary: [] }] }), 'empty_array', 'input')
  const refusesItem = (item, kind, field) => refuses(() => read({ input: [item] }), kind, `input[0]${field}`)
  refusesItem('Hello', 'invalid_type', '')
  refusesItem({ content: 'Hello' }, 'missing_required_parameter', '.role')
  refusesItem({ role: 'tool', content: 'Hello' }, 'invalid_value', '.role')
  refusesItem({ role: 'user' }, 'invalid_type', '.content')
  refusesItem({ role: 'user', content: [{ type: 'text', text: 'Hello' }] }, 'unsupported_value', '.content[0].type')
  refusesItem({ role: 'user', content: [{ type: 'input_image', image_url: '' }] }, 'unsupported_value', '.content[0].type')
  refusesItem({ role: 'user', content: [{ type: 'input_text' }] }, 'invalid_type', '.content[0].text')
  refusesItem({ type: 'custom_tool_call', call_id: 'a', name: 'f', input: '' }, 'unsupported_value', '.type')
  refusesItem({ type: 'item_reference', id: 'msg_1' }, 'unsupported_value', '.type')
  refusesItem({ type: 7 }, 'invalid_type', '.type')
})

const part = (text, index = 0, more = {}) => ({ text, channel: 'call', call: { index, ...more } })
const callOf = (index, name, ...texts) =>
  [part('', index, { id: `call_${index}`, name }), ...texts.map(text => part(text, index)), part('', index, { ends: true })]
const lookup = { type: 'function', name: 'lookup', parameters: { type: 'object', properties: { word: { type: 'string' } } }, strict: false }
const asking = { ...hello, tools: [lookup] }

test('calls of tools are items of their own, whole and in events', async () => {
  const said = ['Well.', ...callOf(0, 'lookup', '{"word"', ': "a"}'), ...callOf(1, 'lookup', '{}')]
  const client = clientOf(modelOf(said, { finishReason: 'tool-calls' }))
  const whole = await client.responses.create({ ...asking, tool_choice: 'required', parallel_tool_calls: true })
  const { output: [message, ...calls], status, output_text: text } = whole
  assert.deepEqual([message.type, message.status, text, status], ['message', 'completed', 'Well.', 'completed'])
  for (const { id } of calls) assert.match(id, /^fc_\w+$/)
  const item = (id, call, args) => ({ id, type: 'function_call', status: 'completed', call_id: call, name: 'lookup', arguments: args })
  assert.deepEqual(calls, [item(calls[0].id, 'call_0', '{"word": "a"}'), item(calls[1].id, 'call_1', '{}')])
  assert.deepEqual([whole.tools, whole.tool_choice], [[{ ...lookup, description: null }], 'required'])

  const events = []
  for await (const event of await client.responses.create({ ...asking, stream: true })) events.push(event)
  assert.deepEqual(events.map(({ sequence_number: number }) => number), [...events.keys()])
  const last = events.at(-1).response
  const at = index => ({ item_id: last.output[index].id, output_index: index })
  const begun = index => ({ output_index: index, item: { ...last.output[index], status: 'in_progress', arguments: '' } })
  const from = events.findIndex(({ type, item }) => type === 'response.output_item.done' && item.type === 'message') + 1
  assert.deepEqual(events.slice(from).map(({ type, sequence_number: _, response, ...event }) => [type, response?.status ?? event]), [
    ['response.output_item.added', begun(1)],
    ['response.function_call_arguments.delta', { ...at(1), delta: '{"word"' }],
    ['response.function_call_arguments.delta', { ...at(1), delta: ': "a"}' }],
    ['response.function_call_arguments.done', { ...at(1), arguments: '{"word": "a"}' }],
    ['response.output_item.done', { output_index: 1, item: last.output[1] }],
    ['response.output_item.added', begun(2)],
    ['response.function_call_arguments.delta', { ...at(2), delta: '{}' }],
    ['response.function_call_arguments.done', { ...at(2), arguments: '{}' }],
    ['response.output_item.done', { output_index: 2, item: last.output[2] }],
    ['response.completed', 'completed']
  ])

  const stream = client.responses.stream(asking)
  const snapshots = []
  stream.on('response.function_call_arguments.delta', ({ snapshot }) => snapshots.push(snapshot))
  const final = await stream.finalResponse()
  assert.deepEqual(snapshots, ['{"word"', '{"word": "a"}', '{}'])
  assert.deepEqual(final.output.map(({ type }) => type), ['message', 'function_call', 'function_call'])
  // Calls need no text before them.
  const alone = await clientOf(modelOf([reasoning('Hm'), ...said.slice(1)], { finishReason: 'tool-calls' })).responses.create(asking)
  assert.deepEqual(alone.output.map(({ type }) => type), ['reasoning', 'function_call', 'function_call'])
})

test('a call that is cut off is incomplete, and so is its response', async () => {
  const begun = [part('', 0, { id: 'call_0', name: 'lookup' }), part('{"wo')]
  for (const [finishReason, details] of [['length', { reason: 'max_output_tokens' }], ['stop', null]]) {
    const client = clientOf(modelOf(begun, { finishReason }))
    for (const found of [await client.responses.create(asking), await client.responses.stream(asking).finalResponse()]) {
      const [{ type, status, arguments: args }, ...others] = found.output
      assert.deepEqual([type, status, args, others.length], ['function_call', 'incomplete', '{"wo', 0])
      assert.deepEqual([found.status, found.incomplete_details], ['incomplete', details])
    }
  }
  // One that is whole stays whole.
  const { output, status } = await clientOf(modelOf(callOf(0, 'lookup', '{}'), { finishReason: 'length' })).responses.create(asking)
  assert.deepEqual([output.map(({ status }) => status), status], [['completed'], 'incomplete'])
})

test('a loop of two steps: the calls and their results are the next input', async () => {
  const model = modelOf([reasoning('Hm'), 'So.', ...callOf(0, 'lookup', '{"word":"a"}'), ...callOf(1, 'lookup', '{}')], { finishReason: 'tool-calls' })
  const client = clientOf(model)
  const tools = [zodResponsesFunction({ name: 'lookup', parameters: z.object({ word: z.string().optional().nullable() }) })]
  const input = [{ role: 'user', content: 'Hello' }]
  const { output } = await client.responses.parse({ model: 'any', input, tools })
  const calls = output.filter(({ type }) => type === 'function_call')
  assert.deepEqual(calls.map(({ parsed_arguments: parsed }) => parsed), [{ word: 'a' }, {}])
  const results = calls.map(({ call_id: id }, n) => ({
    type: 'function_call_output', call_id: id, output: n ? [{ type: 'input_text', text: 'x' }, { type: 'input_text', text: 'y' }] : 'far'
  }))
  await client.responses.create({ model: 'any', input: [...input, ...output, ...results, { role: 'user', content: 'And?' }], tools })
  const toolCalls = [{ id: 'call_0', name: 'lookup', arguments: { word: 'a' } }, { id: 'call_1', name: 'lookup', arguments: {} }]
  assert.deepEqual(model.asked[1].input, [
    { role: 'user', content: 'Hello' }, { role: 'assistant', content: 'So.', toolCalls },
    { role: 'tool', content: 'far', toolCallId: 'call_0' }, { role: 'tool', content: 'x\ny', toolCallId: 'call_1' },
    { role: 'user', content: 'And?' }
  ])
  assert.equal(model.asked[1].options.tools[0].name, 'lookup')
  // Texts around a call are one with it, as they are in chat completions.
  const around = [{ role: 'assistant', content: 'So.' }, calls[0], { role: 'assistant', content: ' Well.' }, results[0], { role: 'assistant', content: 'Far.' }]
  await client.responses.create({ model: 'any', input: [...input, ...around], tools })
  assert.deepEqual(model.asked[2].input.slice(1), [
    { role: 'assistant', content: 'So. Well.', toolCalls: toolCalls.slice(0, 1) },
    { role: 'tool', content: 'far', toolCallId: 'call_0' }, { role: 'assistant', content: 'Far.' }
  ])
})

test('the client parses the calls of chat completions by a schema of zod', async () => {
  const model = modelOf(callOf(0, 'lookup', '{"word":"a"}'), { finishReason: 'tool-calls' })
  const tools = [zodFunction({ name: 'lookup', parameters: z.object({ word: z.string() }) })]
  const asked = { model: 'any', tools, tool_choice: { type: 'function', function: { name: 'lookup' } } }
  const client = clientOf(model)
  const messages = [{ role: 'user', content: 'Hello' }]
  const { choices: [{ message }] } = await client.chat.completions.parse({ ...asked, messages })
  assert.deepEqual(message.tool_calls[0].function.parsed_arguments, { word: 'a' })
  const final = await client.chat.completions.stream({ ...asked, messages }).finalChatCompletion()
  assert.deepEqual(final.choices[0].message.tool_calls[0].function.parsed_arguments, { word: 'a' })
  assert.deepEqual(model.asked[0].options.tools[0].parameters.required, ['word'])
})

test('wrong tools, calls and results are refused, each by its name', async () => {
  const refusesTool = (tool, kind, field) => refuses(() => read({ tools: [tool] }), kind, `tools[0]${field}`)
  refusesTool(null, 'invalid_type', '')
  refusesTool({ type: 'web_search' }, 'unsupported_value', '.type')
  refusesTool({ type: 'function' }, 'missing_required_parameter', '.name')
  refusesTool({ type: 'function', name: 'f', parameters: [] }, 'invalid_type', '.parameters')
  refusesTool({ type: 'function', name: 'f', description: 5 }, 'invalid_type', '.description')
  // The form of chat completions.
  refusesTool({ type: 'function', function: { name: 'f' } }, 'missing_required_parameter', '.name')
  refuses(() => read({ tools: {} }), 'invalid_type', 'tools')
  const tools = [lookup]
  refuses(() => read({ tools, tool_choice: 'some' }), 'invalid_value', 'tool_choice')
  refuses(() => read({ tools, tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [] } }), 'unsupported_value', 'tool_choice.type')
  refuses(() => read({ tool_choice: 'required' }), 'invalid_value', 'tool_choice')
  refuses(() => read({ tools, tool_choice: { type: 'function', name: 'other' } }), 'invalid_value', 'tool_choice')
  refuses(() => read({ tools, parallel_tool_calls: 'no' }), 'invalid_type', 'parallel_tool_calls')
  refuses(() => read({ tools, text: { format: { type: 'json_object' } } }), 'unsupported_parameter', 'text.format')

  const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }
  const result = { type: 'function_call_output', call_id: 'a', output: 'x' }
  const refusesItem = (items, kind, field) => refuses(() => read({ input: items }), kind, `input[${items.length - 1}]${field}`)
  refusesItem([{ ...call, call_id: undefined }], 'missing_required_parameter', '.call_id')
  refusesItem([{ ...call, name: 7 }], 'invalid_type', '.name')
  for (const args of ['{"a', '[]', '7']) refusesItem([{ ...call, arguments: args }], 'invalid_value', '.arguments')
  refusesItem([call, { ...result, output: undefined }], 'invalid_type', '.output')
  refusesItem([call, { ...result, output: [{ type: 'input_image', image_url: '' }] }], 'unsupported_value', '.output[0].type')
  // No call waits for this result.
  refusesItem([result], 'invalid_value', '.call_id')
  refusesItem([call, { ...result, call_id: 'b' }], 'invalid_value', '.call_id')
  refusesItem([call, result, result], 'invalid_value', '.call_id')
  refusesItem([call, { role: 'user', content: 'x' }, result], 'invalid_value', '.call_id')
  const refused = { constructor: OpenAI.BadRequestError, status: 400, param: 'input[0].call_id' }
  await assert.rejects(clientOf(modelOf([])).responses.create({ ...hello, input: [result] }), refused)
})

test('log-probabilities of the answer, whole and streamed', async () => {
  // A character of two tokens. Its text comes with the second.
  const told = (bytes, text, more) => ({ text, bytes, channel: 'answer', logprob: -0.5, top: [], ...more })
  const model = modelOf([
    { ...told([72], 'H'), channel: 'reasoning' }, told([195], '', { top: [{ id: 2, text: '\ufffd', logprob: -2 }] }), told([164], 'ä')
  ])
  const client = clientOf(model)
  const asked = { ...hello, include: ['message.output_text.logprobs'], top_logprobs: 1 }
  const expected = [
    { token: '\ufffd', bytes: [195], logprob: -0.5, top_logprobs: [{ token: '\ufffd', bytes: [], logprob: -2 }] },
    { token: '\ufffd', bytes: [164], logprob: -0.5, top_logprobs: [] }
  ]
  const { output } = await client.responses.create(asked)
  assert.deepEqual(output[1].content[0].logprobs, expected)
  const deltas = []
  const stream = client.responses.stream(asked)
  stream.on('response.output_text.delta', ({ delta, logprobs }) => deltas.push([delta, logprobs]))
  assert.deepEqual((await stream.finalResponse()).output[1].content[0].logprobs, expected)
  assert.deepEqual(deltas, [['', [expected[0]]], ['ä', [expected[1]]]])
})

test('a stop by the signal, by the stream or by the reader ends the generation', async () => {
  const ways = {
    'the signal, whole': async (client, { signal }) =>
      assert.rejects(client.responses.create(hello, { signal }), OpenAI.APIUserAbortError),
    'the signal, streaming': async (client, abort) => {
      const stream = await client.responses.create({ ...hello, stream: true }, { signal: abort.signal })
      for await (const _ of stream) abort.abort()
    },
    'the helper': async client => {
      const stream = client.responses.stream(hello)
      stream.on('response.output_text.delta', () => stream.abort())
      await assert.rejects(stream.finalResponse(), OpenAI.APIUserAbortError)
    },
    'leaving the loop': async client => { for await (const _ of await client.responses.create({ ...hello, stream: true })) break },
    'the signal, in the page': async (_, { signal }, model) => assert.rejects(createResponse(model, hello, { signal }), /enough/),
    'the controller, in the page': async (_, abort, model) => {
      const stream = await createResponse(model, { ...hello, stream: true })
      for await (const _ of stream) stream.controller.abort()
    }
  }
  for (const [way, stop] of Object.entries(ways)) {
    const model = modelOf(ENDLESS)
    const abort = new AbortController()
    if (/whole|signal, in/.test(way)) setTimeout(() => abort.abort(new Error('enough')), 5)
    await stop(clientOf(model), abort, model)
    await stopped(model)
    assert.equal(model.stopped, 1, way)
  }
})

test('failures are the client\'s own errors, before the first token and after it', async () => {
  const lost = new BitNetError('device-lost', 'the GPU is gone')
  const before = clientOf(modelOf([], { fails: lost }))
  for (const stream of [false, true]) {
    await assert.rejects(before.responses.create({ ...hello, stream }), { constructor: OpenAI.InternalServerError, status: 503, code: 'device-lost' })
  }
  const model = modelOf(['Hi'], { fails: lost })
  const stream = await clientOf(model).responses.create({ ...hello, stream: true })
  let count = 0
  await assert.rejects(async () => { for await (const _ of stream) count += 1 }, { constructor: OpenAI.APIError, code: 'device-lost' })
  assert.equal(count, 5)
  await assert.rejects(clientOf(model).responses.stream(hello).finalResponse(), { code: 'device-lost', message: /the GPU is gone/ })
  const raw = await (await answer(model, 'https://host/v1/responses', post({ ...hello, stream: true }))).text()
  const last = raw.split('\n\n').filter(Boolean).at(-1)
  assert.deepEqual(JSON.parse(last.replace('event: error\ndata: ', '')), {
    type: 'error', code: 'device-lost', message: 'the GPU is gone', param: null, sequence_number: count
  })
  await assert.rejects(async () => { for await (const _ of await createResponse(model, { ...hello, stream: true })); }, lost)

  const refused = { constructor: OpenAI.BadRequestError, status: 400, code: 'unsupported_parameter', param: 'store' }
  await assert.rejects(before.responses.create({ ...hello, store: true }), refused)
  await assert.rejects(createResponse(model, { ...hello, store: true }), { code: 'bad-option', param: 'store' })
  await assert.rejects(createResponse(model, hello, { sgnal: 1 }), { code: 'bad-option', message: /sgnal/ })
  const silent = clientOf(modelOf(['Hi'], { thinking: false }))
  await assert.rejects(silent.responses.create({ ...hello, reasoning: { effort: 'high' } }), { status: 400, param: 'reasoning.effort' })
  await assert.rejects(before.responses.retrieve('resp_1'), { status: 404, code: 'unknown_url' })
  const get = await answer(model, 'https://host/v1/responses')
  assert.equal(get.status, 405)
})
