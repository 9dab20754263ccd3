// A conversation that gets too long, without a browser: a model that is made by hand, of which each
// word is a token. tests/web/generate.spec.ts has chats with a real one.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const { Chat } = await import(new URL('../../pkg/page/chat.js', import.meta.url))
const { readNote } = await import(new URL('../../pkg/page/note.js', import.meta.url))
const restored = (model, note) => Chat.restored(model, readNote(note))

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

test('a stop that comes when the model has just ended changes nothing', async () => {
  const { chat, model, ask } = chatOf(100)
  await ask('a')
  const before = chat.messages
  let end
  model.start = () => () => new Promise(resolve => { end = () => resolve({ finishReason: 'stop' }) })
  for (const turn of [options => chat.continue(options), options => chat.send('b', options)]) {
    const abort = new AbortController()
    const answer = turn({ signal: abort.signal })
    answer.text().catch(() => {})
    while (!end) await new Promise(resolve => setTimeout(resolve))
    abort.abort()
    end()
    end = undefined
    await answer.stats.catch(() => {})
    assert.deepEqual(chat.messages, before)
  }
})

test('tools of a turn count as part of its prompt', async () => {
  const { chat, seen, ask, model } = chatOf(24, 'slide')
  const asked = []
  model.count = async (messages, options) => {
    asked.push(options)
    return words(messages) + 8 * (options.tools?.length ?? 0)
  }
  await ask('a b c')
  await ask('b b c')
  // The prompt has 17 words and may have 18, because 6 of the 24 are kept for the answer. The tool adds 8.
  const tools = [{ name: 'f' }]
  assert.equal(await ask('c b c', { tools, toolChoice: 'required', seed: 1 }), 4)
  assert.deepEqual(asked.at(-1), { tools, toolChoice: 'required' })
  assert.deepEqual(seen.at(-1), ['be kind', 'c b c'])
  assert.deepEqual(asked[0], {})
  assert.equal(chat.messages.length, 7)
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
  const again = restored(model, note)
  assert.deepEqual(again.messages, chat.messages)
  assert.equal((await again.send('f b c').stats).droppedMessages, await ask('f b c'))
  assert.deepEqual(seen.at(-2).slice(0, -1), seen.at(-1).slice(0, -1))

  const said = JSON.parse(note)
  const forged = [
    'no note', 'null', '[]', '{}', { ...said, dropped: -1 }, { ...said, dropped: 99 }, { ...said, dropped: 0.5 },
    { ...said, overflow: 'wrap' }, { ...said, said: undefined }, { ...said, defaults: [] }, { ...said, defaults: { raw: true } },
    { ...said, before: [{ role: 'robot', content: '' }] }, { ...said, said: [{ role: 'user', content: 5 }] }
  ]
  for (const note of forged) {
    const text = typeof note === 'string' ? note : JSON.stringify(note)
    assert.throws(() => restored(model, text), error => error.code === 'bad-option' && /chat/.test(error.message), text)
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

/** A chat whose model tells what it saw, with the options, and answers what the test says. */
const playOf = (before = [], defaults = {}) => {
  const seen = []
  const answers = []
  const model = {
    contextLength: 99,
    count: async messages => words(messages),
    start: (input, options) => async (onToken, signal) => {
      const messages = await input()
      seen.push({ said: messages.map(({ content, prefix }) => prefix ? `${content}…` : content).join(' | '), options })
      const answer = answers.shift() ?? 'yes'
      if (answer instanceof Error) throw answer
      for (const text of [answer].flat()) {
        onToken({ text, channel: 'answer' })
        await new Promise(setImmediate)
      }
      return { finishReason: signal.aborted ? 'abort' : 'stop' }
    },
    save: async (messages, note) => note
  }
  const chat = new Chat(model, before, undefined, defaults)
  const said = () => chat.messages.map(({ content }) => content).join(' | ')
  return { chat, model, seen, answers, said, last: () => seen.at(-1).said }
}

/** Reads the first text of an answer, and stops it. */
const stop = async answer => {
  for await (const _ of answer) break
  await answer.stats
}

const isBad = name => error => error.code === 'bad-option' && error.message.includes(`\`${name}\``)

test('an answer is generated again, and the old one stays until the new one is whole', async () => {
  const { chat, answers, said, last } = playOf([SYSTEM])
  assert.throws(() => chat.regenerate(), isBad('regenerate'))
  answers.push('one', 'two', new Error('lost'), ['th', 'ree'], ['fo', 'ur'])
  await chat.send('q').text()
  const again = chat.regenerate()
  assert.equal(said(), 'be kind | q | one')
  assert.equal(await again.text(), 'two')
  assert.deepEqual([said(), last()], ['be kind | q | two', 'be kind | q'])
  await assert.rejects(chat.regenerate().text(), /lost/)
  await stop(chat.regenerate())
  assert.equal(said(), 'be kind | q | two')

  // Others that were asked for meanwhile come after it.
  const turns = [chat.regenerate(), chat.send('r'), chat.regenerate({ prefix: 'no, ' })]
  assert.deepEqual(await Promise.all(turns.map(turn => turn.text())), ['four', 'yes', 'yes'])
  assert.deepEqual([said(), last()], ['be kind | q | four | r | no, yes', 'be kind | q | four | r | no, …'])
  const late = chat.regenerate()
  chat.reset()
  await assert.rejects(late.text(), isBad('regenerate'))
  assert.equal(said(), 'be kind')

  const question = playOf([SYSTEM, { role: 'user', content: 'q' }])
  await question.chat.regenerate().text()
  assert.equal(question.said(), 'be kind | q | yes')
  assert.throws(() => playOf([{ role: 'assistant', content: 'hi' }]).chat.regenerate(), isBad('regenerate'))
})

test('a message is edited: what follows is dropped, and nothing if its answer fails', async () => {
  const begin = [SYSTEM, { role: 'user', content: 'a' }, { role: 'assistant', content: 'A' }]
  const { chat, answers, said, last } = playOf(begin)
  for (const index of [-1, 3, 0.5, NaN, '1x', undefined]) assert.throws(() => chat.edit(index, 'x'), isBad('index'))
  assert.throws(() => chat.edit(1, 5), isBad('content'))
  assert.throws(() => chat.edit(0, 'x', null), isBad('options'))
  answers.push('B', 'C', new Error('lost'), new Error('lost'), ['D', '!'])
  await chat.send('b').text()
  await chat.send('c').text()
  await assert.rejects(chat.edit(1, 'other').text(), /lost/)
  await assert.rejects(chat.edit(3, 'other').text(), /lost/)
  assert.equal(said(), 'be kind | a | A | b | B | c | C')
  // A stopped answer stays, as after `send`.
  await stop(chat.edit(3, 'bb'))
  assert.deepEqual([said(), last()], ['be kind | a | A | bb | D', 'be kind | a | A | bb'])
  assert.equal(chat.edit(2, 'AA'), undefined)
  assert.equal(said(), 'be kind | a | AA')
  assert.equal(chat.edit(0, 'be rude'), undefined)
  const edited = chat.edit(1, 'aa')
  assert.equal(said(), 'be rude | aa')
  const next = chat.send('bb')
  assert.deepEqual([await edited.text(), await next.text(), said()], ['yes', 'yes', 'be rude | aa | yes | bb | yes'])
  assert.deepEqual(restored({}, await chat.save()).messages, chat.messages)
  chat.reset()
  assert.equal(said(), 'be kind | a | A')
})

test('if an edit and another one instead of it both fail, all is as before', async () => {
  const begin = ['a', 'A', 'b', 'B'].map((content, n) => ({ role: n % 2 ? 'assistant' : 'user', content }))
  const { chat, answers, said } = playOf(begin)
  answers.push(new Error('lost'), new Error('lost'))
  const turns = [chat.edit(2, 'x'), chat.send('y'), chat.edit(2, 'z')]
  assert.equal(said(), 'a | A | z')
  // Until there is an answer, a copy has none of it.
  assert.deepEqual(chat.fork().messages, begin)
  answers.push(new Error('lost'))
  for (const turn of turns) await assert.rejects(turn.text(), /lost/)
  assert.equal(said(), 'a | A | b | B')
  // The same if the first is stopped before its first text.
  const controller = new AbortController()
  const stopped = chat.edit(0, 'x', { signal: controller.signal })
  controller.abort()
  answers.push([], new Error('lost'))
  const failed = chat.edit(0, 'y')
  await stopped.stats
  await assert.rejects(failed.text(), /lost/)
  assert.equal(said(), 'a | A | b | B')
})

test('turns that fail change nothing in any order, and every question keeps its answer', async () => {
  const { chat, model, answers, said } = playOf()
  let state = 1
  const below = n => (state = state * 1103515245 + 12345 & 0x7fffffff) % 65537 % n
  const roles = messages => messages.map(({ role }) => role[0]).join('')
  const { start } = model
  model.start = (input, options) => start(async () => {
    const messages = await input()
    assert.match(roles(messages), /^(ua)*ua?$/)
    return messages
  }, options)
  for (let round = 0; round < 200; round++) {
    const fails = round % 2 === 0
    const before = said()
    const turns = []
    for (let n = 0; n < 5; n++) {
      answers.push(fails ? new Error('lost') : ['one', [], ['t', 'wo'], new Error('lost')][below(4)])
      const users = chat.messages.flatMap(({ role }, index) => role === 'user' ? [index] : [])
      const controller = new AbortController()
      const options = { signal: controller.signal }
      const turn = [
        () => chat.send('q', options), () => chat.edit(users[below(users.length)], 'e', options),
        () => chat.regenerate(options), () => chat.continue(options)
      ][users.length ? below(4) : 0]
      try {
        turns.push(turn().stats)
      } catch (error) {
        assert.match(error.message, /continue/)
      }
      if (below(4) === 0) controller.abort()
      if (below(2)) await new Promise(setImmediate)
    }
    await Promise.allSettled(turns)
    if (fails) assert.equal(said(), before)
    assert.match(roles(chat.messages), /^(ua)*$/)
    answers.length = 0
  }
  assert.ok(said().includes('one') && said().includes('two'))
})

test('an answer that is edited while another one is generated instead stays as the caller has it', async () => {
  const { chat, answers, said } = playOf([{ role: 'user', content: 'q' }, { role: 'assistant', content: 'old' }])
  for (const turn of ['regenerate', 'continue']) {
    answers.push(['n', 'ew'])
    const again = chat[turn]()
    for await (const _ of again) chat.edit(1, 'mine')
    await again.stats
    assert.equal(said(), 'q | mine')
  }
})

test('what an edit drops may make room for turns that have slid out', async () => {
  const { chat, seen, ask } = chatOf(24, 'slide')
  for (const name of ['a', 'b', 'c', 'd']) await ask(`${name} b c`)
  assert.equal((await chat.edit(5, 'c').stats).droppedMessages, 4)
  assert.equal((await chat.edit(3, 'b').stats).droppedMessages, 0)
  assert.deepEqual(seen.at(-1), ['be kind', 'a b c', 'so 1 it', 'b'])
})

test('an answer goes on from where it ended, and becomes one', async () => {
  const { chat, answers, said, last } = playOf()
  assert.throws(() => chat.continue(), isBad('continue'))
  answers.push('It is', ' war', ['m,', ' and'], new Error('lost'), 'X', 'half \ufffd', 'ä')
  await chat.send('q').text()
  assert.equal(await chat.continue().text(), ' war')
  assert.deepEqual([said(), last()], ['q | It is war', 'q | It is…'])
  await stop(chat.continue())
  await assert.rejects(chat.continue().text(), /lost/)
  assert.deepEqual([said(), last()], ['q | It is warm,', 'q | It is warm,…'])
  assert.throws(() => chat.continue({ prefix: 'x' }), isBad('prefix'))
  // It may be asked for before the answer has come.
  const turns = [chat.send('r'), chat.continue(), chat.continue()]
  await Promise.all(turns.map(turn => turn.text()))
  assert.deepEqual([said(), last()], ['q | It is warm, | r | Xhalf ä', 'q | It is warm, | r | Xhalf …'])
  // Or before it has been replaced.
  answers.push('He', ' was', ' cold')
  for (const turn of [chat.regenerate(), chat.continue(), chat.continue()]) await turn.text()
  assert.equal(said(), 'q | It is warm, | r | He was cold')
  answers.push(new Error('lost'))
  const broken = [chat.send('s'), chat.continue()]
  await assert.rejects(broken[0].text(), /lost/)
  await assert.rejects(broken[1].text(), isBad('continue'))
  assert.throws(() => playOf([{ role: 'user', content: 'q' }]).chat.continue(), isBad('continue'))
  // A chat may begin with an answer. It is not the one that is missing.
  const greeting = playOf([{ role: 'assistant', content: 'Hi' }])
  greeting.answers.push(new Error('lost'))
  const missing = [greeting.chat.send('s'), greeting.chat.continue()]
  await assert.rejects(missing[0].text(), /lost/)
  await assert.rejects(missing[1].text(), isBad('continue'))
})

test('JSON that is begun, or goes on, is read as a whole', async () => {
  const { chat, answers } = playOf()
  answers.push('1,', '2', ']')
  const begun = chat.send('q', { prefix: '[' })
  await begun.text()
  await chat.continue().text()
  assert.deepEqual(await chat.continue().json(), [1, 2])
  await assert.rejects(begun.json(), { code: 'incomplete' })
})

test('a chat is saved as it was, although its answer goes on while others use the model', async () => {
  const { chat, model, answers } = playOf([{ role: 'user', content: 'q' }, { role: 'assistant', content: 'It' }])
  let finish
  model.save = (messages, note) => new Promise(resolve => { finish = () => resolve({ messages, note }) })
  const saving = chat.save()
  answers.push(' is')
  await chat.continue().text()
  finish()
  const { messages, note } = await saving
  assert.deepEqual(messages, JSON.parse(note).said)
})

test('an answer begins with a prefix, which becomes part of it', async () => {
  const { chat, answers, said, last, seen } = playOf()
  answers.push(' Apple', [], [], new Error('lost'))
  assert.equal(await chat.send('Fruits?', { prefix: '1.' }).text(), ' Apple')
  assert.deepEqual([said(), last(), seen[0].options], ['Fruits? | 1. Apple', 'Fruits? | 1.…', { thinking: undefined }])
  await chat.edit(0, 'Enough?', { prefix: 'No' }).text()
  assert.equal(said(), 'Enough? | No')
  const controller = new AbortController()
  const stopped = chat.send('More?', { prefix: '2.', signal: controller.signal })
  controller.abort()
  await stopped.stats
  await assert.rejects(chat.send('More?', { prefix: '2.' }).text(), /lost/)
  assert.equal(said(), 'Enough? | No')
  assert.throws(() => chat.send('More?', { prefix: 2 }), isBad('prefix'))
  assert.equal(said(), 'Enough? | No')
})

test('a chat has options of its own, unless a turn has others', async () => {
  const { chat, seen, model } = playOf([], { temperature: 0.5, thinking: true, stop: ['.'] })
  await chat.send('q', { temperature: undefined, maxTokens: 3 }).text()
  await chat.regenerate({ temperature: 1, stop: [] }).text()
  await chat.continue().text()
  await chat.send('q', { prefix: 'a', thinking: false }).text()
  await chat.fork().send('r').text()
  await restored(model, await chat.save()).send('r').text()
  const own = { temperature: 0.5, thinking: true, stop: ['.'] }
  assert.deepEqual(seen.map(({ options }) => options), [
    { ...own, maxTokens: 3 }, { ...own, temperature: 1, stop: [] }, { ...own, thinking: undefined }, { ...own, thinking: false },
    own, own
  ])
})
