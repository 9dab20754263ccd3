// A conversation that gets too long, without a browser: a model that is made by hand, of which each
// word is a token. tests/web/generate.spec.ts has chats with a real one.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const { Chat } = await import(new URL('../../pkg/page/chat.js', import.meta.url))

const SYSTEM = { role: 'system', content: 'be kind' }
const words = messages => messages.flatMap(({ content }) => content.split(' ')).length

/** A chat of that model, and what the model saw of each turn. It answers with three words. */
const chatOf = (contextLength, overflow, before = [SYSTEM]) => {
  const { model, seen } = modelOf(contextLength)
  const chat = new Chat(model, before, overflow)
  const ask = async (text, options) => (await chat.send(text, options).stats).droppedMessages
  return { chat, seen, ask, model }
}

const modelOf = contextLength => {
  const seen = []
  const model = {
    contextLength,
    count: async messages => words(messages),
    start: input => async onToken => {
      const messages = await input()
      if (words(messages) > contextLength) throw new Error('context-full')
      seen.push(messages.map(({ content }) => content))
      onToken({ text: `so ${seen.length} it`, channel: 'answer' })
      return { finishReason: 'stop' }
    },
    save: async (messages, note) => ({ messages, note })
  }
  return { model, seen }
}

test('the oldest turns slide out, the system message stays, and the turns after that find room', async () => {
  const { chat, seen, ask } = chatOf(24, 'slide')
  const dropped = []
  for (const name of ['a', 'b', 'c', 'd', 'e']) dropped.push(await ask(`${name} b c`))
  // 2 + 3, 11 and 17 words of 24, of which 6 are the answer's; then 23, of which 12 may stay.
  assert.deepEqual(dropped, [0, 0, 0, 4, 4])
  assert.deepEqual(seen[2], ['be kind', 'a b c', 'so 1 it', 'b b c', 'so 2 it', 'c b c'])
  assert.deepEqual(seen[3], ['be kind', 'c b c', 'so 3 it', 'd b c'])
  assert.deepEqual(seen[4], ['be kind', 'c b c', 'so 3 it', 'd b c', 'so 4 it', 'e b c'])
  assert.equal(chat.messages.length, 11)

  const fork = chat.fork()
  assert.equal((await fork.send('f b c').stats).droppedMessages, 8)
  assert.equal(await ask('f b c', { maxTokens: 1 }), 4)
  chat.reset()
  assert.equal(await ask('again'), 0)
})

test('a message that is too long by itself fails, and nothing is left out for it', async () => {
  const { chat, ask } = chatOf(20, 'slide')
  await ask('a b c')
  await assert.rejects(ask('long '.repeat(20)), /context-full/)
  await new Promise(setImmediate)
  assert.equal(chat.messages.length, 3)
  assert.equal(await ask('b'), 0)
})

test('without it, a conversation that is too long fails', async () => {
  const { ask } = chatOf(12, undefined, [])
  assert.equal(await ask('a b c'), undefined)
  await assert.rejects(ask('a b c d e f g'), /context-full/)
})

test('a chat is saved when its answers are there, and restored with all that it knew', async () => {
  const { chat, seen, ask, model } = chatOf(24, 'slide')
  for (const name of ['a', 'b', 'c', 'd']) await ask(`${name} b c`)
  const running = chat.send('e b c')
  const { messages, note } = await chat.save()
  await running.text()
  // The messages that the model sees, without one that slid out.
  assert.deepEqual(messages.map(({ content }) => content), [...seen.at(-1), 'so 5 it'])
  const restored = Chat.restored(model, note)
  assert.deepEqual(restored.messages, chat.messages)
  assert.equal((await restored.send('f b c').stats).droppedMessages, await ask('f b c'))
  assert.deepEqual(seen.at(-2).slice(0, -1), seen.at(-1).slice(0, -1))

  const said = JSON.parse(note)
  const forged = [
    'no note', 'null', '[]', '{}', { ...said, dropped: -1 }, { ...said, dropped: 99 }, { ...said, dropped: 0.5 },
    { ...said, overflow: 'wrap' }, { ...said, said: said.said.slice(1) }, { ...said, said: said.said.toReversed() },
    { ...said, before: [{ role: 'robot', content: '' }] }, { ...said, said: [{ role: 'user', content: 5 }] }
  ]
  for (const note of forged) {
    const text = typeof note === 'string' ? note : JSON.stringify(note)
    assert.throws(() => Chat.restored(model, text), error => error.code === 'bad-option' && /chat/.test(error.message), text)
  }
})

test('a reset while an answer comes leaves out nothing of the next conversation', async () => {
  const { chat, seen, ask, model } = chatOf(24, 'slide')
  for (const name of ['a', 'b', 'c']) await ask(`${name} b c`)
  const { count } = model
  model.count = messages => {
    chat.reset()
    return count(messages)
  }
  await ask('d b c')
  model.count = count
  assert.equal(await ask('e'), 0)
  assert.deepEqual(seen.at(-1), ['be kind', 'e'])
  assert.equal(chat.messages.length, 3)
})

test('a send that fails leaves out nothing, whatever its `maxTokens` is', async () => {
  for (const maxTokens of ['many', NaN, {}, undefined]) {
    const { chat, seen, ask, model } = chatOf(24, 'slide')
    for (const name of ['a', 'b']) await ask(`${name} b c`)
    const { start } = model
    model.start = input => async () => {
      await input()
      throw new Error('bad-option')
    }
    await assert.rejects(ask('c '.repeat(14).trim(), { maxTokens }), /bad-option/)
    model.start = start
    assert.equal(await ask('d', { maxTokens }), 0, String(maxTokens))
    assert.equal(seen.at(-1).length, 6)
    assert.equal(chat.messages.length, 7)
  }
})
