// A chat as programs for `@browser-ai/web-llm` make it: only the import and the model's address are others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  convertToModelMessages, createUIMessageStream, extractReasoningMiddleware, isStepCount, readUIMessageStream, streamText, tool,
  toUIMessageStream, wrapLanguageModel
} from 'ai'
import { z } from 'zod'
import { calling, load, scripted } from './models.mjs'

const { tritloom: webLLM, TritloomLanguageModel: WebLLMLanguageModel } = await load('ai-sdk')
const { BitNet } = await load('index')

/** A transport for `useChat` that tells the progress, asks before it searches, and hides the reasoning in tags. */
class Transport {
  searched = []
  #model
  #tools = {
    search: tool({
      description: 'Searches the web',
      inputSchema: z.object({ query: z.string() }),
      execute: async ({ query }) => {
        this.searched.push(query)
        return { found: 3 }
      }
    })
  }

  constructor(model) {
    assert.ok(model instanceof WebLLMLanguageModel)
    this.#model = model
  }

  async sendMessages({ messages, abortSignal }) {
    const [model, tools] = [this.#model, this.#tools]
    const prompt = await convertToModelMessages(messages)
    return createUIMessageStream({
      execute: async ({ writer }) => {
        const tell = (status, progress) =>
          writer.write({ type: 'data-modelDownloadProgress', id: 'download', data: { status, progress, message: status } })
        if (await model.availability() !== 'available') {
          await model.createSessionWithProgress(progress =>
            tell(progress < 1 ? 'downloading' : 'complete', Math.round(100 * progress)))
        }
        const { stream } = streamText({
          model: wrapLanguageModel({ model, middleware: extractReasoningMiddleware({ tagName: 'think' }) }),
          tools, toolApproval: { search: 'user-approval' }, stopWhen: isStepCount(5), messages: prompt, abortSignal
        })
        writer.merge(toUIMessageStream({ stream, tools, sendStart: false }))
      }
    })
  }
}

/** The message that a stream makes, and its parts as they came. */
const read = async (stream, message) => {
  const [seen, shown] = stream.tee()
  const chunks = []
  // A reader of messages changes the data of parts.
  for await (const chunk of seen) chunks.push(structuredClone(chunk))
  let last
  for await (const now of readUIMessageStream({ stream: shown, message })) last = now
  return { chunks, message: last }
}

test('a transport with progress, middleware and a call that a person allows', async t => {
  const model = scripted(
    [calling('search', { query: 'bees' }), { finishReason: 'tool-calls' }],
    [['<think>Three', '.</think>', 'There are 3.']]
  )
  model.ended = new Promise(() => {})
  const asked = []
  t.mock.method(BitNet, 'availability', async () => ({ available: true, backends: {} }))
  t.mock.method(BitNet.cache, 'list', async () => [])
  t.mock.method(BitNet, 'load', async (source, { onProgress }) => {
    asked.push(source)
    for (const fraction of [0, 0.5, 1]) onProgress({ fraction })
    return model
  })
  const transport = new Transport(webLLM('https://a.example/m.gguf'))
  const question = { id: '1', role: 'user', parts: [{ type: 'text', text: 'How many bees?' }] }

  const first = await read(await transport.sendMessages({ messages: [question] }))
  const progress = first.chunks.filter(({ type }) => type === 'data-modelDownloadProgress').map(({ data }) => data.progress)
  assert.deepEqual(progress, [0, 50, 100])
  assert.deepEqual(asked, ['https://a.example/m.gguf'])
  const call = first.message.parts.find(({ type }) => type === 'tool-search')
  assert.deepEqual([call.state, call.input, transport.searched], ['approval-requested', { query: 'bees' }, []])

  Object.assign(call, { state: 'approval-responded', approval: { id: call.approval.id, approved: true } })
  const second = await read(await transport.sendMessages({ messages: [question, first.message] }), first.message)
  assert.deepEqual(transport.searched, ['bees'])
  assert.deepEqual(second.chunks.filter(({ type }) => type.startsWith('data-')), [])
  const said = type => second.message.parts.filter(part => part.type === type).map(({ text }) => text)
  assert.deepEqual([said('reasoning'), said('text')], [['Three.'], ['There are 3.']])
  assert.deepEqual(model.asked[1].input.map(({ role }) => role), ['user', 'assistant', 'tool'])
  assert.equal(asked.length, 1)
})
