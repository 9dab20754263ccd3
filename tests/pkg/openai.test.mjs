// OpenAI's interface without a browser: what requests stand for, and what is answered, with a model
// that is made by hand. The npm package `openai` asks a real one in tests/web/openai.spec.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDLESS, load, modelOf, post, refuses, STATS, stopped } from './answerer.mjs'

const { readChatRequest, readCompletionRequest } = await load('openai/request')
const { answer, create } = await load('openai/server')
const { errorOf, Offsets } = await load('openai/response')
const { Generation } = await load('generation')
const { BitNetError } = await load('error')

const USER = { role: 'user', content: 'Hello' }
const chat = body => readChatRequest({ model: 'any', messages: [USER], ...body })
const completion = body => readCompletionRequest({ model: 'any', prompt: 'Once', ...body })

const CHAT_URL = 'https://api.openai.com/v1/chat/completions'
const hello = { model: 'any', messages: [USER] }
const eventsOf = text => text.split('\n\n').filter(Boolean).map(event => event.replace(/^data: /, ''))

test('parameters become options of a generation', () => {
  const found = chat({
    temperature: 0.5, top_p: 0, presence_penalty: -2, frequency_penalty: 2, seed: -1, stop: 'x',
    max_completion_tokens: 7, reasoning_effort: 'low', n: 2, stream: true,
    stream_options: { include_usage: true }
  })
  assert.deepEqual(found, {
    model: 'any',
    inputs: [[USER]],
    n: 2,
    stream: true,
    usage: true,
    options: {
      temperature: 0.5, topP: 1e-9, presencePenalty: -2, frequencyPenalty: 2, seed: 4294967295,
      stop: ['x'], maxTokens: 7, thinking: true
    }
  })
  assert.deepEqual(chat({ max_tokens: 7, reasoning_effort: 'none' }).options, { temperature: 1, maxTokens: 7, thinking: false })
  assert.equal(chat({ seed: 2 ** 32 + 5 }).options.seed, 5)
})

test('what is left out or null has OpenAI\'s defaults', () => {
  const nothing = { model: null, temperature: null, n: null, stream: null, stop: null, tools: null, stream_options: null }
  const defaults = { model: undefined, n: 1, stream: false, usage: false, options: { temperature: 1 } }
  assert.deepEqual(chat(nothing), { ...defaults, inputs: [[USER]] })
  const options = { temperature: 1, maxTokens: 16, raw: true }
  assert.deepEqual(completion({ model: undefined }), { ...defaults, inputs: ['Once'], options })
})

test('messages: developer is system, and the parts of a text are lines', () => {
  const content = [{ type: 'text', text: 'one' }, { type: 'text', text: 'two' }]
  const { inputs } = chat({ messages: [{ role: 'developer', content: 'Be kind' }, { ...USER, content, name: 'Ann' }] })
  assert.deepEqual(inputs, [[{ role: 'system', content: 'Be kind' }, { role: 'user', content: 'one\ntwo' }]])
})

test('prompts: a text, tokens, or several of them', () => {
  const inputsOf = prompt => completion({ prompt }).inputs
  assert.deepEqual(inputsOf(['a', 'b']), ['a', 'b'])
  assert.deepEqual(inputsOf([1, 2]), [Uint32Array.of(1, 2)])
  assert.deepEqual(inputsOf([[1], [2]]), [Uint32Array.of(1), Uint32Array.of(2)])
})

test('wrong values are refused, each by its name', () => {
  for (const body of [null, 'text', 7, []]) refuses(() => readChatRequest(body), 'invalid_type', null, /JSON object/)
  refuses(() => readChatRequest({}), 'missing_required_parameter', 'messages')
  refuses(() => readCompletionRequest({}), 'missing_required_parameter', 'prompt')
  refuses(() => chat({ messages: [] }), 'empty_array', 'messages')
  refuses(() => completion({ prompt: [] }), 'empty_array', 'prompt')
  for (const [param, value] of [
    ['model', 7], ['messages', 'Hello'], ['temperature', '1'], ['temperature', Number.NaN], ['top_p', true], ['seed', 1.5], ['n', '2'],
    ['stop', 7], ['stream', 'yes'], ['max_tokens', 1.5], ['presence_penalty', {}], ['reasoning_effort', 3]
  ]) {
    const kind = Number.isNaN(value) ? 'invalid_value' : 'invalid_type'
    refuses(() => chat({ [param]: value }), kind, param)
  }
  for (const [param, value] of [
    ['temperature', 2.1], ['temperature', -0.1], ['top_p', 1.1], ['n', 0], ['n', 129], ['max_tokens', 0], ['frequency_penalty', -2.1],
    ['seed', 2 ** 60], ['reasoning_effort', 'much']
  ]) refuses(() => chat({ [param]: value }), 'invalid_value', param)
  refuses(() => chat({ stop: ['a', ''] }), 'empty_string', 'stop[1]')
  refuses(() => chat({ stop: '' }), 'empty_string', 'stop')
  refuses(() => completion({ prompt: ['a', 1] }), 'invalid_type', 'prompt[1]')
  refuses(() => completion({ prompt: [[1, -1]] }), 'invalid_value', 'prompt[0][1]')
  refuses(() => chat({ stream_options: { include_usage: true } }), 'invalid_parameter_combination', 'stream_options')
  refuses(() => chat({ stream: true, stream_options: true }), 'invalid_type', 'stream_options')
  refuses(() => chat({ stream: true, stream_options: { include_usage: 1 } }), 'invalid_type', 'stream_options.include_usage')
  refuses(() => chat({ max_tokens: 1, max_completion_tokens: 1 }), 'invalid_parameter_combination', 'max_tokens')
})

test('formats of answers', () => {
  const formatOf = format => chat({ response_format: format }).options.responseFormat
  const described = { name: 'point', description: 'A point', schema: { type: 'object' }, strict: true }
  assert.deepEqual(formatOf({ type: 'json_schema', json_schema: described }), { type: 'json_schema', schema: { type: 'object' } })
  assert.deepEqual(formatOf({ type: 'json_schema', json_schema: { name: 'any' } }), { type: 'json_schema', schema: true })
  assert.deepEqual(formatOf({ type: 'json_object' }), { type: 'json_object' })
  assert.equal(formatOf({ type: 'text' }), undefined)
  const refusesFormat = (format, kind, field) => refuses(() => formatOf(format), kind, `response_format${field}`)
  refusesFormat('json', 'invalid_type', '')
  refusesFormat({}, 'missing_required_parameter', '.type')
  refusesFormat({ type: 'xml' }, 'invalid_value', '.type')
  refusesFormat({ type: 'json_schema' }, 'missing_required_parameter', '.json_schema')
  refusesFormat({ type: 'json_schema', json_schema: [] }, 'invalid_type', '.json_schema')
  refusesFormat({ type: 'json_schema', json_schema: {} }, 'missing_required_parameter', '.json_schema.name')
  refusesFormat({ type: 'json_schema', json_schema: { name: 'a', schema: 'b' } }, 'invalid_type', '.json_schema.schema')
})

test('tools, calls and results', () => {
  const described = { name: 'f', description: 'Does.', parameters: { properties: { a: {} } }, strict: true }
  const tools = [{ type: 'function', function: described }, { type: 'function', function: { name: 'g', parameters: null } }]
  const { options } = chat({ tools, tool_choice: { type: 'function', function: { name: 'g' } }, parallel_tool_calls: false })
  assert.deepEqual(options, {
    temperature: 1, toolChoice: { name: 'g' }, parallelToolCalls: false,
    tools: [{ name: 'f', description: 'Does.', parameters: { type: 'object', properties: { a: {} } } }, { name: 'g' }]
  })
  assert.equal(chat({ tools, tool_choice: 'required' }).options.toolChoice, 'required')
  const call = { id: '1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
  const messages = [USER, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', content: 'r', tool_call_id: '1' }]
  assert.deepEqual(chat({ messages }).inputs[0].slice(1), [
    { role: 'assistant', content: '', toolCalls: [{ id: '1', name: 'f', arguments: { a: 1 } }] },
    { role: 'tool', content: 'r', toolCallId: '1' }
  ])
  const refusesTool = (tool, kind, field) => refuses(() => chat({ tools: [tool] }), kind, `tools[0]${field}`)
  refusesTool(null, 'invalid_type', '')
  refusesTool({ type: 'custom', custom: {} }, 'unsupported_value', '.type')
  refusesTool({ type: 'function', function: {} }, 'missing_required_parameter', '.function.name')
  refusesTool({ type: 'function', function: { name: 'f', parameters: [] } }, 'invalid_type', '.function.parameters')
  refusesTool({ type: 'function', function: { name: 'f', description: 5 } }, 'invalid_type', '.function.description')
  refuses(() => chat({ tools: {} }), 'invalid_type', 'tools')
  refuses(() => chat({ tools, tool_choice: 'some' }), 'invalid_value', 'tool_choice')
  refuses(() => chat({ tools, tool_choice: { type: 'allowed_tools' } }), 'unsupported_value', 'tool_choice.type')
  refuses(() => chat({ tool_choice: 'required' }), 'invalid_value', 'tool_choice')
  refuses(() => chat({ tools, tool_choice: { type: 'function', function: { name: 'h' } } }), 'invalid_value', 'tool_choice')
  refuses(() => chat({ tools, parallel_tool_calls: 'no' }), 'invalid_type', 'parallel_tool_calls')
  refuses(() => chat({ tools, response_format: { type: 'json_object' } }), 'unsupported_parameter', 'response_format')
})

test('calls are answered whole and in chunks', async () => {
  const part = (text, call) => ({ text, channel: 'call', call: { index: 0, ...call } })
  const parts = ['Well.', part('', { id: 'call_1', name: 'f' }), part('{"a"'), part(': 1}'), part('', { ends: true })]
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const asked = { ...hello, tools }
  const { choices: [choice] } = await create(modelOf(parts, { finishReason: 'tool-calls' }), asked)
  assert.equal(choice.finish_reason, 'tool_calls')
  assert.deepEqual(choice.message, {
    role: 'assistant', content: 'Well.', refusal: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }]
  })
  const alone = await create(modelOf(parts.slice(1), { finishReason: 'tool-calls' }), asked)
  assert.equal(alone.choices[0].message.content, null)
  const deltas = []
  for await (const { choices: [{ delta, finish_reason: reason }] } of await create(modelOf(parts, { finishReason: 'tool-calls' }), { ...asked, stream: true })) {
    deltas.push(reason ?? delta)
  }
  assert.deepEqual(deltas, [
    { role: 'assistant', content: '', refusal: null }, { content: 'Well.' },
    { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }, { tool_calls: [{ index: 0, function: { arguments: ': 1}' } }] },
    'tool_calls'
  ])
  // A call that is cut off is left out.
  const cut = await create(modelOf(parts.slice(0, 3), { finishReason: 'length' }), asked)
  assert.deepEqual([cut.choices[0].finish_reason, cut.choices[0].message.tool_calls], ['length', undefined])
})

test('messages that are none are refused by their index', () => {
  const refusesMessage = (message, kind, field) => refuses(() => chat({ messages: [USER, message] }), kind, `messages[1]${field}`)
  refusesMessage(null, 'invalid_type', '')
  refusesMessage({ content: 'Hi' }, 'missing_required_parameter', '.role')
  refusesMessage({ role: 'robot', content: 'Hi' }, 'invalid_value', '.role')
  refusesMessage({ role: 'toString', content: 'Hi' }, 'invalid_value', '.role')
  refusesMessage({ role: 'function', content: 'Hi', name: 'a' }, 'unsupported_value', '.role')
  refusesMessage({ role: 'tool', content: 'Hi' }, 'missing_required_parameter', '.tool_call_id')
  refusesMessage({ role: 'assistant', content: null }, 'invalid_type', '.content')
  const refusesCall = (call, kind, field) => refusesMessage({ role: 'assistant', content: null, tool_calls: [call] }, kind, `.tool_calls[0]${field}`)
  refusesCall({}, 'missing_required_parameter', '.type')
  refusesCall({ type: 'custom', custom: {} }, 'unsupported_value', '.type')
  refusesCall({ type: 'function' }, 'missing_required_parameter', '.function')
  refusesCall({ type: 'function', function: { name: 'f' } }, 'missing_required_parameter', '.function.arguments')
  refusesCall({ id: 'a', type: 'function', function: { name: 'f', arguments: '[' } }, 'invalid_value', '.function.arguments')
  refusesCall({ type: 'function', function: { name: 'f', arguments: '{}' } }, 'invalid_type', '.id')
  refusesMessage({ role: 'user', content: [7] }, 'invalid_type', '.content[0]')
  refusesMessage({ role: 'user', content: [{ type: 'text' }] }, 'invalid_type', '.content[0].text')
  refusesMessage({ role: 'user', content: [{ type: 'image_url', image_url: {} }] }, 'unsupported_value', '.content[0].type')
})

test('what is not supported yet is refused by name, unless it asks for nothing', () => {
  const unsupported = {
    audio: {}, function_call: 'auto', functions: [{}], modalities: ['text', 'audio'],
    moderation: {}, store: true,
    web_search_options: {}
  }
  for (const [param, value] of Object.entries(unsupported)) refuses(() => chat({ [param]: value }), 'unsupported_parameter', param)
  for (const [param, value] of Object.entries({ best_of: 2, echo: true, response_format: { type: 'json_object' }, suffix: 'end' })) {
    refuses(() => completion({ [param]: value }), 'unsupported_parameter', param)
  }
  const nothing = {
    function_call: 'none', functions: [], logprobs: false, modalities: ['text'], response_format: { type: 'text' },
    store: false, tool_choice: 'auto', tools: [], parallel_tool_calls: false, top_logprobs: 0, verbosity: 'medium', best_of: 1, echo: false, suffix: ''
  }
  assert.deepEqual(chat(nothing).options, { temperature: 1 })
})

test('what concerns OpenAI\'s servers is ignored; a name that is none is refused', () => {
  assert.deepEqual(chat({ user: 'me', metadata: { a: 'b' }, service_tier: 'auto' }).options, { temperature: 1 })
  for (const param of ['temprature', 'max_completion_token', 'constructor', 'maxTokens']) {
    refuses(() => chat({ [param]: 1 }), 'unknown_parameter', param)
  }
  refuses(() => completion({ reasoning_effort: 'low' }), 'unknown_parameter', 'reasoning_effort')
})

test('logprobs and biases of tokens', async () => {
  assert.deepEqual(chat({ logit_bias: { 7: -100, 8: 0.5 } }).options.logitBias, { 7: -100, 8: 0.5 })
  assert.equal(chat({ top_logprobs: 3, logprobs: true }).options.logprobs, 3)
  assert.equal(chat({ logprobs: true }).options.logprobs, 0)
  assert.equal(completion({ logprobs: 5 }).options.logprobs, 5)
  refuses(() => chat({ top_logprobs: 3 }), 'invalid_parameter_combination', 'top_logprobs')
  refuses(() => chat({ logprobs: true, top_logprobs: 21 }), 'invalid_value', 'top_logprobs')
  refuses(() => chat({ logprobs: 3 }), 'invalid_type', 'logprobs')
  refuses(() => completion({ logprobs: 6 }), 'invalid_value', 'logprobs')
  refuses(() => completion({ top_logprobs: 2 }), 'unknown_parameter', 'top_logprobs')
  refuses(() => chat({ logit_bias: [] }), 'invalid_type', 'logit_bias')
  refuses(() => chat({ logit_bias: { the: 1 } }), 'invalid_value', 'logit_bias')
  refuses(() => chat({ logit_bias: { 5: 101 } }), 'invalid_value', 'logit_bias.5')

  // A character of two tokens. Its text comes with the second.
  const told = (bytes, text, more) => ({ text, bytes, channel: 'answer', logprob: -0.5, top: [], ...more })
  const top = [{ id: 1, text: 'A', logprob: -0.25 }, { id: 2, text: '\ufffd', logprob: -2 }]
  const model = modelOf([
    { ...told([72], 'Hm'), channel: 'reasoning' }, told([65, 195], 'A', { top }), told([164, 66], 'äB'), 'tail'
  ])
  const { choices: [{ logprobs }] } = await create(model, { ...hello, logprobs: true })
  assert.deepEqual(logprobs, {
    content: [
      {
        token: 'A\ufffd', bytes: [65, 195], logprob: -0.5,
        top_logprobs: [{ token: 'A', bytes: [65], logprob: -0.25 }, { token: '\ufffd', bytes: null, logprob: -2 }]
      },
      { token: '\ufffdB', bytes: [164, 66], logprob: -0.5, top_logprobs: [] }
    ],
    refusal: null
  })
  const streamed = []
  for await (const { choices: [{ delta, logprobs }] } of await create(model, { ...hello, logprobs: true, stream: true })) {
    streamed.push([delta.content, logprobs?.content.length])
  }
  assert.deepEqual(streamed, [['', undefined], ['A', 1], ['äB', 1], ['tail', undefined], [undefined, undefined]])

  const completed = async body => answer(model, 'https://host/v1/completions', post({ prompt: 'a', logprobs: 2, ...body }))
  const expected = {
    tokens: ['A\ufffd', '\ufffdB'], token_logprobs: [-0.5, -0.5],
    top_logprobs: [{ 'A\ufffd': -0.5, A: -0.25, '\ufffd': -2 }, { '\ufffdB': -0.5 }], text_offset: [0, 1]
  }
  assert.deepEqual((await (await completed({})).json()).choices[0].logprobs, expected)
  const events = eventsOf(await (await completed({ stream: true })).text()).slice(0, -1).map(event => JSON.parse(event).choices[0].logprobs)
  assert.deepEqual(events.flatMap(told => told?.text_offset ?? []), [0, 1])
})

test('choices come in order, with seeds of their own; a prompt counts once', async () => {
  const model = modelOf([{ text: 'Hm.', channel: 'reasoning' }, 'Hi', '!'], { finishReason: 'length' })
  const found = await create(model, { ...hello, n: 2, seed: 4294967295 })
  assert.deepEqual(found.choices, [0, 1].map(index => ({
    index, message: { role: 'assistant', content: 'Hi!', refusal: null }, logprobs: null, finish_reason: 'length'
  })))
  assert.deepEqual(found.usage, {
    prompt_tokens: 5,
    completion_tokens: 6,
    total_tokens: 11,
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 2 }
  })
  assert.deepEqual(model.asked.map(({ options }) => options.seed), [4294967295, 0])

  const response = await answer(model, 'https://host/v1/completions', post({ prompt: ['a', 'b'], n: 2 }))
  const body = await response.json()
  assert.deepEqual(body.choices.map(({ index, text, finish_reason: reason }) => [index, text, reason]), [0, 1, 2, 3].map(index => [index, 'Hi!', 'length']))
  assert.deepEqual([body.object, body.model, body.usage.prompt_tokens, body.usage.completion_tokens], ['text_completion', 'tiny', 10, 12])
  assert.deepEqual(model.asked.slice(2).map(({ input }) => input), ['a', 'a', 'b', 'b'])
})

test('a stream has the role first, the reason last, then the usage, then [DONE]', async () => {
  const model = modelOf(['Hi', '', '!'])
  const body = { ...hello, n: 2, stream: true, stream_options: { include_usage: true } }
  const response = await answer(model, CHAT_URL, post(body))
  assert.match(response.headers.get('content-type'), /^text\/event-stream/)
  const events = eventsOf(await response.text())
  assert.equal(events.pop(), '[DONE]')
  const chunks = events.map(event => JSON.parse(event))
  assert.equal(new Set(chunks.map(({ id, object, created, model }) => [id, object, created, model].join())).size, 1)
  assert.match(chunks[0].id, /^chatcmpl-\w+$/)
  const { usage, choices } = chunks.pop()
  assert.deepEqual([choices, usage.completion_tokens], [[], 6])
  assert.deepEqual(chunks.map(({ usage }) => usage), Array(8).fill(null))
  const deltas = [{ role: 'assistant', content: '', refusal: null }, { content: 'Hi' }, { content: '!' }, {}]
  const parts = chunks.flatMap(({ choices }) => choices)
  for (const index of [0, 1]) {
    assert.deepEqual(parts.filter(part => part.index === index), deltas.map((delta, at) =>
      ({ index, delta, logprobs: null, finish_reason: at === 3 ? 'stop' : null })))
  }
  // Both choices come together.
  const order = parts.map(({ index }) => index)
  assert.ok(order.indexOf(1) < order.lastIndexOf(0), order.join())

  const plain = eventsOf(await (await answer(modelOf([]), CHAT_URL, post({ ...hello, stream: true }))).text())
  assert.deepEqual(plain.slice(0, -1).map(event => JSON.parse(event).choices[0].finish_reason), [null, 'stop'])
  assert.ok(!('usage' in JSON.parse(plain[0])))

  const texts = eventsOf(await (await answer(model, 'https://host/v1/completions', post({ prompt: 'a', stream: true }))).text())
  assert.deepEqual(texts.slice(0, -1).map(event => JSON.parse(event).choices[0].text), ['Hi', '!', ''])
})

test('a stop by the signal, by the stream or by the reader ends the generation', async () => {
  const streamed = { ...hello, stream: true }
  const ways = {
    'the signal, whole': async (model, abort) => {
      const whole = answer(model, CHAT_URL, post(hello, abort.signal))
      setTimeout(() => abort.abort(new Error('enough')))
      await assert.rejects(whole, /enough/)
    },
    'the signal, streaming': async (model, abort) => {
      const { body } = await answer(model, CHAT_URL, post(streamed, abort.signal))
      abort.abort(new Error('enough'))
      await assert.rejects(async () => { for await (const _ of body); }, /enough/)
    },
    'cancelling the stream': async model => (await answer(model, CHAT_URL, post(streamed))).body.cancel(),
    'leaving the loop': async model => { for await (const _ of await create(model, streamed)) break },
    'the controller': async model => {
      const stream = await create(model, streamed)
      for await (const _ of stream) stream.controller.abort()
    }
  }
  for (const [way, stop] of Object.entries(ways)) {
    const model = modelOf(ENDLESS)
    await stop(model, new AbortController())
    await stopped(model)
    assert.equal(model.stopped, 1, way)
  }
  await assert.rejects(answer(modelOf(ENDLESS), CHAT_URL, post(hello, AbortSignal.abort(new Error('before')))), /before/)
})

test('failures have OpenAI\'s form and a status, before the first token and after it', async () => {
  const lost = new BitNetError('device-lost', 'the GPU is gone')
  const before = await answer(modelOf([], { fails: lost }), CHAT_URL, post({ ...hello, stream: true }))
  assert.deepEqual([before.status, before.headers.get('x-should-retry')], [503, 'true'])
  assert.deepEqual(await before.json(), { error: { message: 'the GPU is gone', type: 'server_error', param: null, code: 'device-lost' } })

  const after = await answer(modelOf(['Hi'], { fails: lost }), CHAT_URL, post({ ...hello, stream: true }))
  assert.equal(after.status, 200)
  const last = JSON.parse(eventsOf(await after.text()).at(-1))
  assert.equal(last.error.code, 'device-lost')

  const statusOf = error => {
    const { status, body } = errorOf(error)
    return [status, body.error.type, body.error.code]
  }
  assert.deepEqual(statusOf(new BitNetError('context-full', '')), [400, 'invalid_request_error', 'context_length_exceeded'])
  assert.deepEqual(statusOf(new BitNetError('bad-option', '')), [400, 'invalid_request_error', 'bad-option'])
  assert.deepEqual(statusOf(new BitNetError('disposed', '')), [500, 'server_error', 'disposed'])
  assert.deepEqual(statusOf(new TypeError('bug')), [500, 'server_error', 'internal'])
})

test('addresses, methods and bodies that cannot be answered', async () => {
  const model = modelOf(['Hi'])
  const asking = async (path, init) => {
    const response = await answer(model, `https://host${path}`, init)
    const { error } = await response.json()
    return [response.status, error.code, error.param, response.headers.get('x-should-retry')]
  }
  assert.deepEqual(await asking('/v1/images/generations', post({})), [404, 'unknown_url', null, 'false'])
  assert.deepEqual(await asking('/v1/chat/completions'), [405, 'method_not_supported', null, 'false'])
  assert.deepEqual(await asking('/v1/models', post({})), [405, 'method_not_supported', null, 'false'])
  assert.deepEqual(await asking('/v1/chat/completions', post('{"messages":')), [400, 'invalid_json', null, 'false'])
  assert.deepEqual(await asking('/v1/chat/completions', post('')), [400, 'invalid_json', null, 'false'])
  assert.deepEqual(await asking('/v1/chat/completions', post({ ...hello, tools: [{}] })), [400, 'missing_required_parameter', 'tools[0].type', 'false'])
  const silent = modelOf(['Hi'], { thinking: false })
  await assert.rejects(create(silent, { ...hello, reasoning_effort: 'high' }), { code: 'bad-option', message: /'reasoning_effort'/ })
  assert.equal((await create(silent, { ...hello, reasoning_effort: 'none' })).choices[0].message.content, 'Hi')
})

test('the models: the loaded one, and any by its name', async () => {
  const model = modelOf([])
  const of = async path => (await answer(model, `https://host/proxy/v1${path}`)).json()
  const one = { id: 'tiny', object: 'model', created: 0, owned_by: 'tritloom' }
  assert.deepEqual(await of('/models'), { object: 'list', data: [one] })
  assert.deepEqual(await of('/models/org%2Fname'), { ...one, id: 'org/name' })
  assert.deepEqual(await of('/models/100%'), { ...one, id: '100%' })
})

test('other servers\' parameters apply; what asks for no tool and how verbose to be is ignored', () => {
  const others = { top_k: 40, min_p: 0.05, repetition_penalty: 1.1 }
  const options = { temperature: 1, topK: 40, minP: 0.05, repeatPenalty: 1.1 }
  assert.deepEqual(chat(others).options, options)
  assert.deepEqual(completion(others).options, { maxTokens: 16, raw: true, ...options })
  assert.equal(chat({ top_k: -1 }).options.topK, 0)
  for (const [param, value] of [['top_k', -2], ['min_p', 1.1], ['repetition_penalty', 0], ['repetition_penalty', -1]]) {
    refuses(() => chat({ [param]: value }), 'invalid_value', param)
  }
  const plain = chat({}).options
  for (const verbosity of ['low', 'medium', 'high']) assert.deepEqual(chat({ verbosity }).options, plain)
  const tools = [{ type: 'function', function: { name: 'f' } }]
  assert.deepEqual(chat({ tools, tool_choice: 'none', parallel_tool_calls: true }).options, plain)
})

test('a request has at most 2048 choices, and the memory of a stream grows with them, not with their square', async () => {
  const prompts = Array(32).fill('Once')
  assert.equal(completion({ prompt: prompts, n: 64 }).n, 64)
  refuses(() => completion({ prompt: prompts, n: 65 }), 'invalid_value', 'prompt', /2048/)

  // A promise that waits keeps what was attached to it: here one answer waits while another comes.
  const attached = new Map()
  const { then } = Promise.prototype
  const finish = []
  const slow = () => new Generation(onToken => new Promise(resolve => {
    finish.push(() => {
      onToken({ text: 'b', channel: 'answer' })
      resolve({ ...STATS })
    })
  }))
  const quick = () => new Generation(async onToken => {
    for (let n = 0; n < 500; n++) onToken({ text: 'a', channel: 'answer' })
    setTimeout(() => finish.forEach(end => end()))
    return { ...STATS }
  })
  let made = 0
  const model = { info: { name: 'm', thinking: false }, generate: () => made++ === 0 ? slow() : quick() }
  const stream = await create(model, { messages: [USER], n: 2, stream: true })
  Promise.prototype.then = function (...args) {
    attached.set(this, 1 + (attached.get(this) ?? 0))
    return then.apply(this, args)
  }
  let chunks = 0
  try {
    for await (const _ of stream) chunks += 1
  } finally {
    Promise.prototype.then = then
  }
  assert.ok(chunks >= 502, String(chunks))
  const most = Math.max(...attached.values())
  assert.ok(most < 10, `${most} were attached to one promise`)
})

test('offsets are linear, and tokens of one character begin where it does', () => {
  const offsets = new Offsets()
  const tokens = [[0x61], [0xf0, 0x9f], [0x98], [0x80], [0x62]]
  assert.deepEqual(tokens.map(bytes => offsets.next({ bytes })), [0, 1, 1, 1, 3])
})
