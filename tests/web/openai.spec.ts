// OpenAI's own client asks a loaded model, in the worker and in this thread. Tests that need no GPU
// are in tests/pkg/openai.test.mjs.
import type OpenAI from 'openai'
import type * as tritloom from '../../pkg/index.js'
import { expect, GOLDEN_MODEL, goldens, load, test } from './harness'
import { giveOpenAI } from './openai'
import type { Page } from '@playwright/test'

const WHO = goldens.find(({ name }) => name === 'who')!
const ONCE = goldens.find(({ name }) => name === 'once')!
/** The token that ends an answer is no part of it. */
const SAID = WHO.greedy.length - 1
const USAGE = {
  prompt_tokens: WHO.ids.length,
  completion_tokens: SAID,
  total_tokens: WHO.ids.length + SAID,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 }
}

declare global {
  interface Window {
    /** The client of the model in the page. */
    client: OpenAI
    /** The question with a known answer. */
    who: { model: string, temperature: number, messages: { role: 'user', content: string }[] }
  }
}

// Our results have the client's types: `tsc` compares them.
export const whole = (given: tritloom.ChatCompletion): OpenAI.ChatCompletion => given
export const chunk = (given: tritloom.ChatCompletionChunk): OpenAI.ChatCompletionChunk => given
export const response = (given: tritloom.ResponseObject): OpenAI.Responses.Response => given
export const event = (given: tritloom.ResponseEvent): OpenAI.Responses.ResponseStreamEvent => given
export const input = (given: OpenAI.Responses.EasyInputMessage & { content: string }): tritloom.ResponseInputItem => given
export const call = (given: OpenAI.Responses.ResponseFunctionToolCall): tritloom.ResponseInputItem => given
export const tool = (given: OpenAI.Responses.FunctionTool): tritloom.ResponseTool => given

/** Loads a model, and makes a client of it. */
const ready = async (page: Page, url: string, options: tritloom.LoadOptions = {}) => {
  await load(page, options, url)
  await giveOpenAI(page)
  await page.evaluate(() => {
    window.client = new window.openai.default({ fetch: window.model.fetch, apiKey: '-', dangerouslyAllowBrowser: true })
    window.who = { model: 'any/name', temperature: 0, messages: [{ role: 'user', content: 'Who are you?' }] }
  })
}

for (const worker of [true, false]) {
  test(`whole and in chunks, with the usage, ${worker ? 'in a worker' : 'in this thread'}`, { tag: '@quick' }, async ({ shared: page }) => {
    await ready(page, GOLDEN_MODEL, worker ? {} : { worker })
    const { whole, chunks, direct, streamed } = await page.evaluate(async () => {
      const { client, who, model } = window
      const whole = await client.chat.completions.create(who)
      const stream = await client.chat.completions.create({ ...who, stream: true, stream_options: { include_usage: true } })
      const chunks: OpenAI.ChatCompletionChunk[] = []
      for await (const chunk of stream) chunks.push(chunk)
      const direct = await model.chat.completions.create(who)
      let streamed = ''
      for await (const { choices } of await model.chat.completions.create({ ...who, stream: true })) streamed += choices[0]?.delta.content ?? ''
      return { whole, chunks, direct, streamed }
    })
    const choice = { index: 0, message: { role: 'assistant', content: WHO.greedy_text, refusal: null }, logprobs: null, finish_reason: 'stop' }
    expect(whole).toMatchObject({ object: 'chat.completion', model: 'any/name', choices: [choice], usage: USAGE })
    expect(Math.abs(whole.created - Date.now() / 1000)).toBeLessThan(3600)

    const { usage, choices } = chunks.pop()!
    // The prompt is in the cache since the first answer, but for its last token.
    expect(usage).toEqual({ ...USAGE, prompt_tokens_details: { cached_tokens: WHO.ids.length - 1 } })
    expect(choices).toEqual([])
    expect(chunks.map(({ usage }) => usage)).toEqual(chunks.map(() => null))
    expect(chunks[0]!.choices[0]!.delta.role).toBe('assistant')
    expect(chunks.map(({ choices }) => choices[0]!.delta.content ?? '').join('')).toBe(WHO.greedy_text)
    expect(chunks.map(({ choices }) => choices[0]!.finish_reason)).toEqual([...chunks.slice(1).map(() => null), 'stop'])

    expect(direct.choices).toEqual([choice])
    expect(streamed).toBe(WHO.greedy_text)
  })
}

test('responses, whole and in events, to a schema, and cut off', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const { client, model } = window
    const asked = { model: 'any/name', input: 'Who are you?', temperature: 0 }
    const whole = await client.responses.create(asked)
    const streamed = await client.responses.stream(asked).finalResponse()
    const direct = await model.responses.create(asked)
    let said = ''
    for await (const event of await model.responses.create({ ...asked, stream: true })) {
      if (event.type === 'response.output_text.delta') said += event.delta
    }
    const schema = { type: 'object', properties: { legs: { type: 'integer', minimum: 3, maximum: 4 } }, required: ['legs'], additionalProperties: false }
    const text = { format: { type: 'json_schema' as const, name: 'animal', schema } }
    const { output_text: json } = await client.responses.create({ ...asked, text })
    const cut = await client.responses.create({ ...asked, max_output_tokens: 3 })
    return { whole, texts: [streamed.output_text, direct.output_text, said], json, cut: [cut.output_text, cut.status] }
  })
  expect(found.whole).toMatchObject({
    object: 'response', model: 'any/name', status: 'completed', output_text: WHO.greedy_text,
    usage: { input_tokens: WHO.ids.length, output_tokens: SAID, total_tokens: WHO.ids.length + SAID }
  })
  expect(found.texts).toEqual(Array(3).fill(WHO.greedy_text))
  expect(['{"legs":3}', '{"legs":4}']).toContain(found.json)
  expect(found.cut).toEqual(['I am a', 'incomplete'])
})

test('stop, the most tokens, texts and tokens as they are, and the models', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const found = await page.evaluate(async ([text, ids]) => {
    const { client, who } = window
    const answer = async (body: object) => {
      const { choices: [choice] } = await client.chat.completions.create({ ...who, ...body })
      return [choice!.message.content, choice!.finish_reason]
    }
    const completion = { model: 'm', temperature: 0, max_tokens: 6 }
    const listed = []
    for await (const { id, object } of client.models.list()) listed.push([id, object])
    const streamed: string[] = []
    for await (const { choices } of await client.completions.create({ ...completion, prompt: text, stream: true })) streamed.push(choices[0]!.text)
    return {
      stopped: [await answer({ stop: 'model' }), await answer({ stop: ['texts', 'very'] })],
      short: [await answer({ max_tokens: 3 }), await answer({ max_completion_tokens: 3 })],
      completed: (await client.completions.create({ ...completion, prompt: [text, text] })).choices.map(({ text }) => text),
      ofTokens: (await client.completions.create({ ...completion, prompt: ids })).choices[0]!.text,
      streamed: streamed.join(''),
      parsed: await client.chat.completions.stream(who).finalContent(),
      listed,
      retrieved: (await client.models.retrieve('org/name')).id
    }
  }, [ONCE.text.replace('<|begin_of_text|>', ''), ONCE.ids] as const)
  const begins = ONCE.greedy_text.slice(0, found.ofTokens.length)
  expect(found).toEqual({
    stopped: [['I am a very small ', 'stop'], ['I am a ', 'stop']],
    short: [['I am a', 'length'], ['I am a', 'length']],
    completed: [begins, begins],
    ofTokens: begins,
    streamed: begins,
    parsed: WHO.greedy_text,
    listed: [[(await page.evaluate(() => window.model.info.name)), 'model']],
    retrieved: 'org/name'
  })
  expect(begins.length).toBeGreaterThan(5)
})

test('logprobs and logit_bias', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const { chat, completion, chunks, biased } = await page.evaluate(async () => {
    const { client, who, model } = window
    const [{ logprobs: chat } = { logprobs: null }] = (await client.chat.completions.create({ ...who, logprobs: true, top_logprobs: 2 })).choices
    const chunks: string[] = []
    for await (const { choices } of await client.chat.completions.create({ ...who, logprobs: true, stream: true })) {
      chunks.push(...choices[0]?.logprobs?.content?.map(({ token }) => token) ?? [])
    }
    const [id] = await model.tokenize('I')
    const [choice] = (await client.chat.completions.create({ ...who, logit_bias: { [id!]: -100 }, max_tokens: 1 })).choices
    const [{ logprobs: completion } = { logprobs: null }] =
      (await client.completions.create({ model: 'm', temperature: 0, prompt: 'Once', max_tokens: 4, logprobs: 1 })).choices
    return { chat, completion, chunks, biased: choice!.message.content }
  })
  expect(chat!.content!.map(({ token }) => token).join('')).toBe(WHO.greedy_text)
  expect(chunks.join('')).toBe(WHO.greedy_text)
  for (const { token, logprob, bytes, top_logprobs: top } of chat!.content!) {
    expect(top.length).toBe(2)
    expect(top[0]).toEqual({ token, logprob, bytes })
    expect(top[1]!.logprob).toBeLessThan(logprob)
  }
  expect(biased).not.toBe('I')
  expect(completion!.tokens!.length).toBe(4)
  expect(completion!.text_offset![1]).toBe(completion!.tokens![0]!.length)
})

test('a seed gives the same choices again, and each choice is another; streamed, they come together', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const { texts: [first, again, other, alone], streamed, order } = await page.evaluate(async () => {
    const asked = { ...window.who, temperature: 2, max_tokens: 12 }
    const texts = async (seed: number, n: number) =>
      (await window.client.chat.completions.create({ ...asked, seed, n })).choices.map(({ message }) => message.content)
    const streamed = ['', '']
    const order = []
    for await (const { choices: [part] } of await window.client.chat.completions.create({ ...asked, seed: 7, n: 2, stream: true })) {
      streamed[part!.index] += part!.delta.content ?? ''
      order.push(part!.index)
    }
    return { texts: [await texts(7, 2), await texts(7, 2), await texts(99, 2), await texts(8, 1)], streamed, order }
  })
  expect(first).toEqual(again)
  expect(new Set([...first!, ...other!]).size).toBe(4)
  expect(alone).toEqual([first![1]])
  expect(streamed).toEqual(first)
  expect(order.indexOf(1)).toBeLessThan(order.lastIndexOf(0))
})

test('calls at once wait for each other; an abort ends its own', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const { client, who } = window
    const abort = new AbortController()
    const text = async (options: object) =>
      client.chat.completions.create(who, options).then(({ choices }) => choices[0]!.message.content, error => error.constructor.name)
    const calls = [text({}), text({ signal: abort.signal }), text({}), text({ signal: AbortSignal.abort() })]
    abort.abort()
    const texts = await Promise.all(calls)

    const streamed = await client.chat.completions.create({ ...who, stream: true })
    let chunks = 0
    for await (const _ of streamed) if (++chunks === 3) streamed.controller.abort()
    for await (const _ of await client.chat.completions.create({ ...who, stream: true })) break
    return { texts, chunks, after: await text({}) }
  })
  const { greedy_text: said } = WHO
  expect(found).toEqual({ texts: [said, 'APIUserAbortError', said, 'APIUserAbortError'], chunks: 3, after: said })
})

test('answers keep to a schema, whole, parsed and in chunks', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const { client, who } = window
    const schema = {
      type: 'object', properties: { legs: { type: 'integer', minimum: 3, maximum: 4 }, kind: { enum: ['cat', 'dog'] } },
      required: ['legs', 'kind'], additionalProperties: false
    }
    const request = { ...who, response_format: { type: 'json_schema', json_schema: { name: 'animal', schema, strict: true } } } as const
    const whole = await client.chat.completions.create(request)
    const streamed = await client.chat.completions.stream(request).finalContent()
    const cut = await client.chat.completions.create({ ...request, max_completion_tokens: 2 })
    return { whole: whole.choices[0]!, streamed, cut: cut.choices[0]!.finish_reason }
  })
  const { legs, kind } = JSON.parse(found.whole.message.content!)
  expect([3, 4]).toContain(legs)
  expect(['cat', 'dog']).toContain(kind)
  expect(found.whole.finish_reason).toBe('stop')
  expect(found.streamed).toBe(found.whole.message.content)
  expect(found.cut).toBe('length')
})

test('the client runs tools, and its stream has their calls', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const { client, who } = window
    const parameters = {
      type: 'object', properties: { word: { enum: ['sun', 'moon'] } }, required: ['word'], additionalProperties: false
    }
    const seen: string[] = []
    const run = client.chat.completions.runTools({
      ...who, tool_choice: { type: 'function', function: { name: 'lookup' } }, max_completion_tokens: 90,
      tools: [{
        type: 'function',
        function: { name: 'lookup', description: 'Looks up.', parameters, parse: JSON.parse, function: (args: { word: string }) => { seen.push(args.word); return 'far' } }
      }]
    }, { maxChatCompletions: 2 })
    await run.done()
    const tools = [{ type: 'function' as const, function: { name: 'lookup', parameters } }]
    const stream = client.chat.completions.stream({ ...who, tools, tool_choice: 'required', parallel_tool_calls: false })
    const events: string[] = []
    stream.on('tool_calls.function.arguments.done', ({ name, arguments: args }) => events.push(name, args))
    const last = await stream.finalChatCompletion()
    return { seen, roles: run.messages.map(({ role }) => role), events, last: last.choices[0]! }
  })
  expect(['sun', 'moon']).toContain(found.seen[0])
  expect(found.roles.slice(0, 3)).toEqual(['user', 'assistant', 'tool'])
  const [call] = found.last.message.tool_calls!
  expect(found.last.finish_reason).toBe('tool_calls')
  expect(found.events).toEqual(['lookup', call!.type === 'function' && call!.function.arguments])
  expect(Object.keys(JSON.parse(found.events[1]!))).toEqual(['word'])
})

test('responses call tools, and go on with their results', async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const { client } = window
    const parameters = {
      type: 'object', properties: { word: { enum: ['sun', 'moon'] } }, required: ['word'], additionalProperties: false
    }
    const tools = [{ type: 'function' as const, name: 'lookup', description: 'Looks up.', parameters, strict: true }]
    const asked = { model: 'any/name', temperature: 0, tools }
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Who are you?' }]
    const stream = client.responses.stream({ ...asked, input, tool_choice: { type: 'function', name: 'lookup' } })
    let said = ''
    stream.on('response.function_call_arguments.delta', ({ delta }) => { said += delta })
    const first = await stream.finalResponse()
    const [call] = first.output
    if (call?.type !== 'function_call') throw new Error('no call')
    input.push(call, { type: 'function_call_output', call_id: call.call_id, output: 'It is far.' })
    const second = await client.responses.create({ ...asked, input, max_output_tokens: 6 })
    return { said, call, status: first.status, calls: first.output.length, prompt: first.usage!, then: second.usage!.input_tokens_details.cached_tokens }
  })
  expect(found.calls).toBe(1)
  expect(found.status).toBe('completed')
  expect(found.call).toMatchObject({ name: 'lookup', status: 'completed', arguments: found.said })
  expect(['sun', 'moon']).toContain(JSON.parse(found.said).word)
  // The call keeps its tokens.
  expect(found.then).toBeGreaterThan(found.prompt.input_tokens + found.prompt.output_tokens - 30)
})

test('failures are the client\'s own errors', { tag: '@quick' }, async ({ shared: page }) => {
  await ready(page, GOLDEN_MODEL)
  const found = await page.evaluate(async () => {
    const { client, model, who } = window
    const failure = (work: Promise<unknown>) => work.then(() => 'none', error =>
      [error.constructor.name, error.status, error.type, error.code, error.param] as const)
    const asking = (body: object) => failure(client.chat.completions.create({ ...who, ...body } as never))
    const long = [{ role: 'user', content: 'the moon '.repeat(4000) }]
    const failures = {
      tools: await asking({ tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'array' } } }] }),
      format: await asking({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { not: {} } } } }),
      temperature: await asking({ temperature: 3 }),
      messages: await asking({ messages: [], stream: true }),
      context: await asking({ messages: long }),
      streamed: await asking({ messages: long, stream: true }),
      unknown: await failure(client.images.generate({ prompt: 'text' })),
      pooling: await failure(client.embeddings.create({ model: 'm', input: 'text' })),
      direct: await failure(model.chat.completions.create({ ...who, n: 0 })),
      disposed: [] as unknown
    }
    await model.dispose()
    failures.disposed = await asking({})
    return failures
  })
  const refused = (code: string, param: string | null) => ['BadRequestError', 400, 'invalid_request_error', code, param]
  expect(found).toEqual({
    tools: refused('bad-option', null),
    format: refused('bad-option', null),
    temperature: refused('invalid_value', 'temperature'),
    messages: refused('empty_array', 'messages'),
    context: refused('context_length_exceeded', null),
    streamed: refused('context_length_exceeded', null),
    unknown: ['NotFoundError', 404, 'invalid_request_error', 'unknown_url', null],
    pooling: refused('bad-option', null),
    direct: ['RequestError', 400, undefined, 'bad-option', 'n'],
    disposed: ['InternalServerError', 500, 'server_error', 'disposed', null]
  })
})
