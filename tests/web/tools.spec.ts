// Tools in Chromium: calls in a worker and in this thread, results, chats and the loop. Formats of calls by themselves
// are tested in tests/grammar/calls.rs and tests/chat/tools.rs, answers with them in tests/session/tools.rs.
import { expect, GOLDEN_MODEL, load, test } from './harness'

test.use({ backend: 'cpu' })

const TOOL = {
  name: 'lookup',
  description: 'Looks up a word.',
  parameters: {
    type: 'object', properties: { word: { enum: ['sun', 'moon'] }, n: { type: 'integer', minimum: 1, maximum: 9 } },
    required: ['word', 'n'], additionalProperties: false
  }
} as const

for (const worker of [true, false]) {
  test(`calls have valid arguments, ${worker ? 'in a worker' : 'in this thread'}`, async ({ shared: page }) => {
    await load(page, worker ? {} : { worker }, GOLDEN_MODEL)
    const found = await page.evaluate(async tool => {
      const { model } = window
      const [tools, question] = [[tool], { role: 'user', content: 'Who are you?' } as const]
      const answer = model.generate([question], { tools, toolChoice: 'required', parallelToolCalls: false, temperature: 1, seed: 3 })
      const parts: string[] = []
      for await (const { channel, text, call } of answer.tokens()) {
        if (call) parts.push(channel, call.name ?? text)
      }
      const toolCalls = await answer.toolCalls()
      const result = { role: 'tool', toolCallId: toolCalls[0]!.id, content: 'It is far.' } as const
      const messages = [question, { role: 'assistant', content: '', toolCalls } as const, result]
      const next = model.generate(messages, { tools, maxTokens: 8 })
      await next.text()
      const none = await model.generate([question], { tools, toolChoice: 'none' }).text()
      const formatted = await model.generate([question], { tools, toolChoice: 'none', responseFormat: /[a-c]{3}/ }).text()
      const counted = await model.countTokens([question], { tools, toolChoice: 'required', parallelToolCalls: false })
      const { completionTokens } = await answer.stats
      // Within its arguments.
      const cut = model.generate([question], { tools, toolChoice: { name: 'lookup' }, maxTokens: completionTokens - 20 })
      const why = await cut.toolCalls().then(() => 'none', (error: { code: string }) => error.code)
      return {
        text: await answer.text(), parts, toolCalls, stats: await answer.stats, next: [await next.toolCalls(), (await next.stats).reusedTokens],
        none, formatted, counted, cut: [why, (await cut.stats).finishReason], free: await model.generate([question]).text()
      }
    }, TOOL)
    const [{ id, name, arguments: args }] = found.toolCalls as [{ id: string, name: string, arguments: { word: string, n: number } }]
    expect([found.text, found.toolCalls.length, name]).toEqual(['', 1, 'lookup'])
    expect(id).toMatch(/^call_[0-9a-f]{24}$/)
    expect(['sun', 'moon']).toContain(args.word)
    expect(Object.keys(args)).toEqual(['word', 'n'])
    expect(args.n >= 1 && args.n <= 9).toBe(true)
    expect(found.stats.finishReason).toBe('tool-calls')
    expect(found.parts.slice(0, 2)).toEqual(['call', 'lookup'])
    expect(JSON.parse(found.parts.filter(part => part !== 'call').slice(1).join(''))).toEqual(args)
    // The call keeps its tokens.
    expect(found.next[0]).toEqual([])
    expect(found.next[1]).toBeGreaterThan(found.stats.promptTokens + found.stats.completionTokens - 30)
    expect(found.none).toBe(found.free)
    expect(found.formatted).toMatch(/^[a-c]{3}$/)
    expect(found.counted).toBe(found.stats.promptTokens)
    expect(found.cut).toEqual(['incomplete', 'length'])
  })
}

test('a chat keeps calls and takes their results, and is saved with them', async ({ shared: page }) => {
  await load(page, {}, GOLDEN_MODEL)
  const found = await page.evaluate(async tool => {
    const chat = window.model.createChat()
    const tools = [tool]
    const calls = await chat.send('Who are you?', { tools, toolChoice: 'required', parallelToolCalls: false }).toolCalls()
    const results = calls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: 'Far.' }) as const)
    await chat.send(results, { tools, maxTokens: 5 }).text()
    const restored = await window.model.restoreChat(await chat.save())
    const wrong = ['user', 'tool'].map(role => {
      try {
        chat.send(role === 'user' ? [{ role, content: 'x' }] : [])
        return 'none'
      } catch (error) {
        return (error as { code: string }).code
      }
    })
    return { calls, messages: chat.messages, restored: restored.messages, wrong }
  }, TOOL)
  const [question, called, result, answer] = found.messages
  expect(question).toEqual({ role: 'user', content: 'Who are you?' })
  expect(called).toEqual({ role: 'assistant', content: '', toolCalls: found.calls })
  expect(result).toEqual({ role: 'tool', content: 'Far.', toolCallId: found.calls[0]!.id })
  expect(answer!.role).toBe('assistant')
  expect(found.restored).toEqual(found.messages)
  expect(found.wrong).toEqual(['bad-option', 'bad-option'])
})

test('the loop runs what the model calls', async ({ shared: page }) => {
  await load(page, {}, GOLDEN_MODEL)
  const found = await page.evaluate(async ({ name, ...tool }) => {
    const seen: unknown[] = []
    const lookup = { ...tool, execute: (args: { word: string }) => { seen.push(args); return { at: args.word } } }
    const { text, messages, stats } = await window.model.runTools({
      messages: 'Who are you?', tools: { [name]: lookup }, toolChoice: { name }, maxSteps: 2, maxTokens: 90
    })
    return { seen, text, messages, reasons: stats.map(({ finishReason }) => finishReason) }
  }, TOOL)
  expect(found.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  const [{ word }] = found.seen as [{ word: string }]
  expect(found.messages[2]!.content).toBe(JSON.stringify({ at: word }))
  expect(found.messages[3]!.content).toBe(found.text)
  expect(found.reasons[0]).toBe('tool-calls')
})
