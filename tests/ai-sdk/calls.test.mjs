// The npm package `ai` asks models that are made by hand: what it asks of them, and what it makes of their
// answers. Real models answer it in real.test.mjs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addToolInputExamplesMiddleware, APICallError, createProviderRegistry, createUIMessageStream, DirectChatTransport, generateText, isStepCount,
  jsonSchema, NoSuchModelError, Output, streamText, tool, ToolLoopAgent, toUIMessageStream, UnsupportedFunctionalityError,
  wrapLanguageModel
} from 'ai'
import { z } from 'zod'
import { calling, ENDLESS, load, modelOf, reasoning, scripted, STATS, stopped } from './models.mjs'

const { createTritloom, tritloom } = await load('ai-sdk')
const { BitNetError } = await load('error')

// The SDK prints warnings for people.
globalThis.AI_SDK_LOG_WARNINGS = false

const USAGE = {
  inputTokens: 5, inputTokenDetails: { noCacheTokens: 3, cacheReadTokens: 2, cacheWriteTokens: undefined },
  outputTokens: 3, outputTokenDetails: { textTokens: 2, reasoningTokens: 1 }, totalTokens: 8
}
const usageOf = ({ inputTokens, inputTokenDetails, outputTokens, outputTokenDetails, totalTokens }) =>
  ({ inputTokens, inputTokenDetails, outputTokens, outputTokenDetails, totalTokens })

const collected = async stream => {
  const items = []
  for await (const item of stream) items.push(item)
  return items
}

const ASKED = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }]

test('generateText: the text, the reasoning, the usage, and the names of options', async () => {
  const model = modelOf([reasoning('Hm'), 'I am ', 'here.'])
  const result = await generateText({
    model: tritloom(model), instructions: 'Be kind.', prompt: 'Hello', maxOutputTokens: 7, temperature: 0.5, topK: 3, topP: 0,
    presencePenalty: 1, frequencyPenalty: 2, stopSequences: ['x'], seed: -1, reasoning: 'none',
    providerOptions: { tritloom: { minP: 0.1, thinking: true } }
  })
  assert.equal(result.text, 'I am here.')
  assert.equal(result.reasoningText, 'Hm')
  assert.equal(result.finishReason, 'stop')
  assert.deepEqual(usageOf(result.usage), USAGE)
  assert.deepEqual(result.warnings, [])
  assert.equal(result.response.modelId, 'tiny')
  assert.equal(result.providerMetadata.tritloom.promptTokens, STATS.promptTokens)
  assert.deepEqual(model.asked, [{
    input: [{ role: 'system', content: 'Be kind.' }, { role: 'user', content: 'Hello' }],
    options: {
      maxTokens: 7, temperature: 0.5, topK: 3, topP: 1e-9, presencePenalty: 1, frequencyPenalty: 2, stop: ['x'],
      seed: 2 ** 32 - 1, thinking: true, minP: 0.1
    }
  }])
})

test('without options it draws as OpenAI\'s interface does, and ends where the tokens do', async () => {
  const model = modelOf(['cut'], { finishReason: 'length' })
  const { finishReason, rawFinishReason } = await generateText({ model: tritloom(model), prompt: 'Hello' })
  assert.deepEqual([finishReason, rawFinishReason], ['length', 'length'])
  assert.deepEqual(model.asked[0].options, { temperature: 1 })
})

test('streamText: blocks of reasoning and of text, as they come', async () => {
  const model = modelOf([reasoning('H'), reasoning(''), reasoning('m'), 'I am ', 'here.'])
  const result = streamText({ model: tritloom(model), prompt: 'Hello', include: { rawChunks: true } })
  const parts = await collected(result.stream)
  const told = parts.flatMap(({ type, text }) => type === 'raw' ? [] : text === undefined ? [type] : [`${type} ${text}`])
  assert.deepEqual(told, [
    'start', 'start-step', 'reasoning-start', 'reasoning-delta H', 'reasoning-delta m', 'reasoning-end',
    'text-start', 'text-delta I am ', 'text-delta here.', 'text-end', 'finish-step', 'finish'
  ])
  const ids = parts.filter(({ type }) => type === 'reasoning-start' || type === 'text-start').map(({ id }) => id)
  assert.equal(new Set(ids).size, 2)
  assert.deepEqual(usageOf(await result.usage), USAGE)
  assert.equal(await result.text, 'I am here.')
})

test('a stream has its tokens, if they are asked for', async () => {
  const { stream } = await tritloom(modelOf(['one', 'two'])).doStream({ prompt: ASKED, includeRawChunks: true })
  const parts = await collected(stream)
  assert.deepEqual(parts.filter(({ type }) => type === 'raw').map(({ rawValue }) => rawValue.text), ['one', 'two'])
})

test('an answer in a format: the schema of zod is the model\'s, and the value is parsed', async () => {
  const schema = z.object({ name: z.string(), legs: z.number().int().max(4) })
  const written = ['{"name":"M', 'ia","legs":', '4}']
  const model = modelOf(written)
  const output = Output.object({ schema })
  const whole = await generateText({ model: tritloom(model), prompt: 'Hello', output })
  assert.deepEqual(whole.output, { name: 'Mia', legs: 4 })
  const { type, schema: { $schema, ...asked } } = model.asked[0].options.responseFormat
  assert.equal(type, 'json_schema')
  // It would say the schema anew, in another form than the SDK's.
  assert.equal(model.asked[0].options.responseFormat.schema['~standard'], undefined)
  assert.match($schema, /json-schema/)
  assert.deepEqual(asked, {
    type: 'object', required: ['name', 'legs'], additionalProperties: false,
    properties: { name: { type: 'string' }, legs: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: 4 } }
  })

  const streamed = streamText({ model: tritloom(modelOf(written)), prompt: 'Hello', output })
  assert.deepEqual(await collected(streamed.partialOutputStream), [{ name: 'M' }, { name: 'Mia' }, { name: 'Mia', legs: 4 }])

  const any = modelOf(['{}'])
  await generateText({ model: tritloom(any), prompt: 'Hello', output: Output.json() })
  assert.deepEqual(any.asked[0].options.responseFormat, { type: 'json_object' })
})

const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, degrees: 7 })
})

test('tools run in steps, and the model gets their results', async () => {
  const answers = [
    [['Wait. ', ...calling('weather', { city: 'Bern' }), ...calling('weather', { city: 'Rome' }, 1)], { finishReason: 'tool-calls' }],
    [['It is warm.']]
  ]
  const model = scripted(...answers)
  const asked = { prompt: 'How warm?', tools: { weather }, stopWhen: isStepCount(3) }
  const whole = await generateText({ model: tritloom(model), ...asked })
  assert.equal(whole.text, 'It is warm.')
  assert.deepEqual(whole.steps.map(({ finishReason }) => finishReason), ['tool-calls', 'stop'])
  const [{ options }, { input }] = model.asked
  assert.deepEqual(options.tools.map(({ name, description, parameters }) => [name, description, parameters.type, parameters.required]),
    [['weather', 'The weather in a city', 'object', ['city']]])
  assert.equal(options.toolChoice, 'auto')
  assert.deepEqual(input, [
    { role: 'user', content: 'How warm?' },
    {
      role: 'assistant', content: 'Wait. ',
      toolCalls: [['call-0', 'Bern'], ['call-1', 'Rome']].map(([id, city]) => ({ id, name: 'weather', arguments: { city } }))
    },
    ...[['call-0', 'Bern'], ['call-1', 'Rome']].map(([toolCallId, city]) =>
      ({ role: 'tool', toolCallId, content: JSON.stringify({ city, degrees: 7 }) }))
  ])

  const streamed = streamText({ model: tritloom(scripted(...answers)), ...asked })
  const parts = await collected(streamed.stream)
  const inputs = parts.filter(({ type }) => type === 'tool-input-delta').map(({ delta }) => delta)
  assert.deepEqual(inputs, ['{"c', 'ity":"Bern"}', '{"c', 'ity":"Rome"}'])
  const order = parts.map(({ type }) => type).filter(type => /^(text|tool)-/.test(type))
  assert.deepEqual(order.slice(0, 8), [
    'text-start', 'text-delta', 'text-end', 'tool-input-start', 'tool-input-delta', 'tool-input-delta', 'tool-input-end', 'tool-call'
  ])
  assert.equal(await streamed.text, 'It is warm.')
})

test('results of every kind, and calls that were not allowed', async () => {
  const call = (toolCallId, input = {}) => ({ type: 'tool-call', toolCallId, toolName: 't', input })
  const result = (toolCallId, output) => ({ type: 'tool-result', toolCallId, toolName: 't', output })
  const outputs = [
    { type: 'text', value: 'as it is' }, { type: 'error-text', value: 'no' }, { type: 'error-json', value: { no: 1 } }, { type: 'execution-denied' },
    { type: 'execution-denied', reason: 'Not today.' }, { type: 'content', value: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }
  ]
  const model = modelOf(['ok'])
  await tritloom(model).doGenerate({
    prompt: [
      ...ASKED,
      { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm' }, ...outputs.map((_, n) => call(`c${n}`, { n }))] },
      { role: 'tool', content: [...outputs.map((output, n) => result(`c${n}`, output)), { type: 'tool-approval-response', approvalId: 'a', approved: true }] },
      // Another provider has run this one itself.
      { role: 'assistant', content: [call('own'), result('own', { type: 'json', value: [1] }), { type: 'text', text: 'Done.' }] }
    ]
  })
  const { input } = model.asked[0]
  assert.deepEqual(input.filter(({ role }) => role === 'tool').map(({ content }) => content),
    ['as it is', 'no', '{"no":1}', 'The call was not allowed.', 'Not today.', 'a\nb', '[1]'])
  assert.equal(input[1].content, '')
  assert.deepEqual(input.at(-2), { role: 'assistant', content: 'Done.', toolCalls: [{ id: 'own', name: 't', arguments: {} }] })
})

test('the choice of a tool, and tools that nothing can be done with', async () => {
  const chosen = async asked => {
    const model = modelOf(['ok'])
    const { warnings } = await tritloom(model).doGenerate({ prompt: ASKED, ...asked })
    const { tools, toolChoice } = model.asked[0].options
    return [tools?.map(({ name }) => name), toolChoice, warnings.map(({ type, feature }) => `${type} ${feature}`)]
  }
  const one = { type: 'function', name: 'one', inputSchema: {} }
  const given = { type: 'provider', id: 'other.search', name: 'search', args: {} }
  assert.deepEqual(await chosen({ tools: [one], toolChoice: { type: 'tool', toolName: 'one' } }), [['one'], { name: 'one' }, []])
  assert.deepEqual(await chosen({ tools: [one], toolChoice: { type: 'required' } }), [['one'], 'required', []])
  assert.deepEqual(await chosen({ tools: [one], toolChoice: { type: 'none' } }), [undefined, undefined, []])
  assert.deepEqual(await chosen({ tools: [given] }), [undefined, undefined, ['unsupported provider-defined tool other.search']])
  const examples = { ...one, inputExamples: [{ input: {} }] }
  assert.deepEqual((await chosen({ tools: [examples] }))[2], ['unsupported inputExamples of the tool one'])
  await assert.rejects(tritloom(modelOf([])).doGenerate({ prompt: ASKED, tools: [given], toolChoice: { type: 'required' } }), { code: 'bad-option' })
  // The SDK's own middleware puts examples where a model reads them.
  const seen = modelOf(['ok'])
  const middleware = addToolInputExamplesMiddleware()
  await generateText({
    model: wrapLanguageModel({ model: tritloom(seen), middleware }), prompt: 'Hello',
    tools: { one: tool({ description: 'One', inputSchema: jsonSchema({ type: 'object' }), inputExamples: [{ input: { a: 1 } }] }) }
  })
  assert.match(seen.asked[0].options.tools[0].description, /"a":1/)
})

test('with tools, the answer in a format is one more tool', async () => {
  const output = Output.object({ schema: z.object({ summary: z.string() }) })
  const model = scripted(
    [calling('weather', { city: 'Bern' }), { finishReason: 'tool-calls' }],
    [[reasoning('Hm'), ...calling('answer', { summary: 'Warm.' })], { finishReason: 'tool-calls' }]
  )
  const agent = new ToolLoopAgent({ model: tritloom(model), tools: { weather }, output })
  const result = await agent.generate({ prompt: 'How warm?' })
  assert.deepEqual(result.output, { summary: 'Warm.' })
  assert.equal(result.finishReason, 'stop')
  const { tools, toolChoice, parallelToolCalls, responseFormat } = model.asked[0].options
  assert.deepEqual(tools.map(({ name }) => name), ['weather', 'answer'])
  assert.deepEqual(tools[1].parameters.required, ['summary'])
  assert.deepEqual([toolChoice, parallelToolCalls, responseFormat], ['required', false, undefined])

  // Where the call must be one of the caller's tools, there is no answer. The SDK refuses one.
  for (const [toolChoice, chosen] of [['required', 'required'], [{ type: 'tool', toolName: 'weather' }, { name: 'weather' }]]) {
    const model = scripted([calling('weather', { city: 'Bern' }), { finishReason: 'tool-calls' }])
    const asked = { prompt: 'How warm?', tools: { weather }, toolChoice, output }
    const { warnings } = await generateText({ model: tritloom(model), ...asked })
    const { options } = model.asked[0]
    assert.deepEqual([options.tools.map(({ name }) => name), options.toolChoice], [['weather'], chosen])
    assert.deepEqual(warnings.map(({ type, feature }) => `${type} ${feature}`), ['unsupported responseFormat'])
  }

  // A tool of that name is left alone.
  const named = scripted([calling('answer_', { summary: 'Warm.' }), { finishReason: 'tool-calls' }])
  const streamed = streamText({ model: tritloom(named), prompt: 'How warm?', tools: { answer: weather }, output })
  assert.equal(await streamed.text, '{"summary":"Warm."}')
})

test('a call that is cut off is no call', async () => {
  const model = modelOf(calling('weather', { city: 'Bern' }).slice(0, 2), { finishReason: 'length' })
  const { toolCalls, finishReason } = await generateText({ model: tritloom(model), prompt: 'Hello', tools: { weather } })
  assert.deepEqual([toolCalls, finishReason], [[], 'length'])
})

test('reasoning is on or off, and what a model cannot do is a warning', async () => {
  const asked = async (reasoning, thinking = true) => {
    const model = modelOf(['ok'], { thinking })
    const { warnings } = await generateText({ model: tritloom(model), prompt: 'Hello', reasoning })
    return [model.asked[0].options.thinking, ...warnings.map(({ type, feature }) => `${type} ${feature}`)]
  }
  assert.deepEqual(await asked('provider-default'), [undefined])
  assert.deepEqual(await asked('none'), [false])
  // It may always reason, or never.
  assert.deepEqual(await asked('none', false), [undefined, 'unsupported reasoning'])
  assert.deepEqual(await asked('high'), [true, 'compatibility reasoning'])
  assert.deepEqual(await asked('high', false), [undefined, 'unsupported reasoning'])
})

test('a stop ends the answer, before it begins and in its middle', async () => {
  for (const ask of [generateText, options => streamText({ ...options, onError() {} }).text]) {
    const never = modelOf(['no'])
    await assert.rejects(ask({ model: tritloom(never), prompt: 'Hello', abortSignal: AbortSignal.abort() }), { name: 'AbortError' })
    assert.equal(never.asked.length, 0)
  }
  const whole = modelOf(ENDLESS)
  const timeout = new AbortController()
  const answer = generateText({ model: tritloom(whole), prompt: 'Hello', abortSignal: timeout.signal })
  setTimeout(() => timeout.abort(), 5)
  await assert.rejects(answer, { name: 'AbortError' })
  await stopped(whole)

  const model = modelOf(ENDLESS)
  const abort = new AbortController()
  const { stream } = streamText({ model: tritloom(model), prompt: 'Hello', abortSignal: abort.signal })
  const types = []
  for await (const { type } of stream) {
    types.push(type)
    if (type === 'text-delta') abort.abort()
  }
  assert.equal(types.at(-1), 'abort')
  await stopped(model)

  // A reader who leaves stops the model too.
  const left = modelOf(ENDLESS)
  const reader = (await tritloom(left).doStream({ prompt: ASKED })).stream.getReader()
  await reader.read()
  await reader.cancel()
  await stopped(left)
})

test('a lost device is tried again by the SDK, other failures are not', async () => {
  const lost = new BitNetError('device-lost', 'the GPU was lost')
  const model = scripted([[], { fails: lost }], [['Here again.']])
  assert.equal((await generateText({ model: tritloom(model), prompt: 'Hello' })).text, 'Here again.')
  const streams = scripted([[], { fails: lost }], [['Here again.']])
  assert.equal(await streamText({ model: tritloom(streams), prompt: 'Hello' }).text, 'Here again.')

  for (const [code, isRetryable] of [['context-full', false], ['bad-option', false], ['disposed', false], ['device-lost', true], ['network', true]]) {
    const failing = modelOf([], { fails: new BitNetError(code, 'why') })
    await assert.rejects(generateText({ model: tritloom(failing), prompt: 'Hello', maxRetries: 0 }), error => {
      assert.ok(APICallError.isInstance(error) && error instanceof BitNetError)
      assert.deepEqual([error.code, error.isRetryable, error.url], [code, isRetryable, 'tiny'])
      return true
    })
    assert.equal(failing.asked.length, 1)
  }
  // A model of another copy of the package, which has a class of its own.
  const others = Object.assign(new Error('gone'), { name: 'BitNetError', code: 'network' })
  await assert.rejects(generateText({ model: tritloom(modelOf([], { fails: others })), prompt: 'Hello', maxRetries: 0 }), error =>
    error === others && APICallError.isInstance(error) && error.isRetryable)
})

test('a failure after the first token is a part of the stream', async () => {
  const fails = new BitNetError('device-lost', 'the GPU was lost')
  const { stream } = await tritloom(modelOf(['I am'], { fails })).doStream({ prompt: ASKED })
  const parts = await collected(stream)
  assert.deepEqual(parts.slice(-2).map(({ type }) => type), ['error', 'finish'])
  assert.equal(parts.at(-2).error, fails)
  assert.equal(parts.at(-1).finishReason.unified, 'error')

  const seen = []
  const result = streamText({
    model: tritloom(modelOf(['I am'], { fails })), prompt: 'Hello', maxRetries: 0, onError: ({ error }) => seen.push(error)
  })
  const text = await collected(result.textStream).catch(error => [error])
  assert.deepEqual(text[0], 'I am')
  assert.deepEqual(seen, [fails])
})

test('what a model cannot read is refused, and says where it stands', async () => {
  const image = { type: 'file', mediaType: 'image/png', data: Uint8Array.of(137, 80, 78, 71) }
  await assert.rejects(generateText({ model: tritloom(modelOf([])), messages: [{ role: 'user', content: [{ type: 'text', text: 'This?' }, image] }] }), error => {
    assert.ok(UnsupportedFunctionalityError.isInstance(error) && error instanceof BitNetError, String(error))
    assert.equal(error.functionality, 'file part of type image/png')
    assert.equal(error.code, 'bad-option')
    assert.match(error.message, /prompt\[0\]\.content\[1\]/)
    return true
  })
  const refused = async (prompt, said, more) =>
    assert.rejects(tritloom(modelOf([])).doGenerate({ prompt, ...more }), { code: 'bad-option', message: said })
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} }
  const shown = { type: 'content', value: [{ type: 'file', mediaType: 'image/png' }] }
  await refused([{ role: 'assistant', content: [{ type: 'file', mediaType: 'image/png' }] }], /prompt\[0\]\.content\[0\]/)
  await refused([{ role: 'assistant', content: [{ ...call, input: 'x' }] }], /prompt\[0\]\.content\[0\]\.input/)
  await refused([{ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', output: shown }] }], /content\[0\]\.output\.value\[0\]/)
  await refused([{ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', output: { type: 'song' } }] }], /output\.type/)
  await refused([{ role: 'poet', content: [] }], /prompt\[0\]\.role/)
  await refused([null], /prompt\[0\]\.role/)
  await refused('Hello', /`prompt`/)
  for (const role of ['user', 'assistant', 'tool']) {
    for (const content of ['Hello', undefined, [null]]) await refused([{ role, content }], /prompt\[0\]\.content/)
  }
  await refused(ASKED, /`maxTokens`: no such option/, { providerOptions: { tritloom: { maxTokens: 3 } } })
  await refused(ASKED, /`options`/, { providerOptions: { tritloom: 3 } })
  await refused(ASKED, /stopSequences/, { stopSequences: [''] })
  const { warnings } = await tritloom(modelOf(['ok'])).doGenerate({ prompt: [...ASKED, { role: 'assistant', content: [{ type: 'custom', kind: 'a.b' }] }] })
  assert.deepEqual(warnings.map(({ feature }) => feature), ['custom part'])
})

test('a provider gives models of its own, by any of the SDK\'s ways', async () => {
  const provider = createTritloom()
  const registry = createProviderRegistry({ tritloom: provider })
  assert.equal(registry.languageModel('tritloom:https://a.example/m.gguf').modelId, 'https://a.example/m.gguf')
  assert.equal(provider(new URL('https://a.example/m.gguf')).modelId, 'https://a.example/m.gguf')
  assert.equal(provider.chat(new File([], 'm.gguf')).modelId, 'm.gguf')
  assert.equal(provider(new Uint8Array(3)).modelId, 'tritloom')
  assert.equal(provider(modelOf([])).isModelInitialized, true)
  assert.equal(registry.embeddingModel('tritloom:https://a.example/m.gguf').modelId, 'https://a.example/m.gguf')
  assert.throws(() => provider.imageModel('m'), error => NoSuchModelError.isInstance(error) && error.modelType === 'imageModel')
  for (const settings of [3, null, [], { signal: 3 }, { onProgress: 3 }]) assert.throws(() => provider('m', settings), { code: 'bad-option' })
  for (const source of [undefined, null, 3]) assert.throws(() => provider(source), { code: 'bad-option', message: /source/ })
  assert.throws(() => createTritloom(3), { code: 'bad-option' })
  await assert.rejects(provider(modelOf([])).createSessionWithProgress(3), { code: 'bad-option', message: /onProgress/ })
  assert.throws(() => provider(modelOf([]), { context: 64 }), { code: 'bad-option', message: /context/ })
})

test('a chat without a server: DirectChatTransport, and data parts of a transport of one\'s own', async () => {
  const model = scripted([[reasoning('Hm'), 'I am ', 'here.']], [['Yes.']])
  const messages = [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }]
  const transport = new DirectChatTransport({ agent: new ToolLoopAgent({ model: tritloom(model) }) })
  const chunks = await collected(await transport.sendMessages({ chatId: 'c', messages, trigger: 'submit-message' }))
  assert.equal(chunks.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta).join(''), 'I am here.')
  assert.ok(chunks.some(({ type }) => type === 'reasoning-delta'))
  assert.deepEqual(model.asked[0].input, [{ role: 'user', content: 'Hello' }])

  const stream = createUIMessageStream({
    execute: async ({ writer }) => {
      const used = tritloom(model)
      await used.createSessionWithProgress(progress => writer.write({
        type: 'data-modelDownloadProgress', id: 'load', data: { status: 'complete', progress: 100 * progress, message: '' }
      }))
      writer.merge(toUIMessageStream({ stream: streamText({ model: used, prompt: 'Hello' }).stream }))
    }
  })
  const parts = await collected(stream)
  assert.deepEqual(parts.find(({ type }) => type.startsWith('data-')).data, { status: 'complete', progress: 100, message: '' })
  assert.equal(parts.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta).join(''), 'Yes.')
})
