// The logic of the chat demo without a browser: branches, search, files of conversations, links.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from './load.mjs'

const { branchOff, contentOf, messagesOf, newestEnd, pathTo, siblingsOf, titleOf } = await load('chat/conversation.ts')
const { find } = await load('chat/search.ts')
const { fromFile, toJson, toMarkdown } = await load('chat/exchange.ts')
const { linkTo, promptOf } = await load('chat/link.ts')
const { readText } = await load('chat/files.ts')
const { readSchema, readTools } = await load('chat/by-hand.ts')
const { PRESETS, presetOf } = await load('chat/presets.ts')

/** Turns such as `'b<a user text'`: id, parent, role, content. They are created in this order. */
const turnsOf = (...texts) => new Map(texts.map((text, created) => {
  const [, id, parent, role, content] = /^(\w+)<(\w*) (\w+) ?([^]*)$/.exec(text)
  return [id, { id, conversation: 'c', parent: parent || null, role, content, created }]
}))

const conversation = (leaf, title = 'A title', updated = 0, id = 'c') => ({ id, title, created: 0, updated, leaf })

/** Makes ids `n1`, `n2` and so on. */
const counter = () => {
  let count = 0
  return () => `n${++count}`
}

const ids = turns => turns.map(({ id }) => id)

const TREE = ['q1< user One', 'a1<q1 assistant Eins', 'b1<q1 assistant Uno', 'q2<a1 user Two', 'a2<q2 assistant Zwei', 'r2<a1 user Three', 'd2<r2 assistant Drei']

test('a branch leads from the first turn to its end, beside its siblings', () => {
  const turns = turnsOf(...TREE)
  assert.deepEqual(ids(pathTo(turns, 'a2')), ['q1', 'a1', 'q2', 'a2'])
  assert.deepEqual(ids(pathTo(turns, null)), [])
  assert.deepEqual(ids(siblingsOf(turns, turns.get('b1'))), ['a1', 'b1'])
  assert.deepEqual(ids(siblingsOf(turns, turns.get('q1'))), ['q1'])
  assert.equal(newestEnd(turns, 'q1'), 'b1')
  assert.equal(newestEnd(turns, 'a1'), 'd2')
})

test('a branch as a conversation of its own shares nothing with the first', () => {
  const turns = turnsOf(...TREE)
  const { conversation: copy, turns: copies } = branchOff(pathTo(turns, 'q2'), 'Branch', 5, counter())
  assert.deepEqual(copy, { id: 'n1', title: 'Branch', created: 5, updated: 5, leaf: 'n4' })
  assert.deepEqual(copies.map(({ parent, content }) => [parent, content]), [[null, 'One'], ['n2', 'Eins'], ['n3', 'Two']])
  assert.ok(copies.every(({ conversation }) => conversation === 'n1'))
})

test('the model gets no question without an answer but the last, and files before the text', () => {
  const path = [...turnsOf('a< user Stopped', 'b<a assistant', 'c<b user Asked', 'd<c assistant Said', 'e<d user Next').values()]
  const texts = messagesOf(path, 'Be kind').map(({ role, content }) => `${role} ${content}`)
  assert.deepEqual(texts, ['system Be kind', 'user Asked', 'assistant Said', 'user Next'])
  const calls = [{ id: 'x', name: 'f', arguments: {} }]
  const tools = [...turnsOf('a< user Ask', 'b<a assistant', 'c<b tool 7').values()]
  Object.assign(tools[1], { toolCalls: calls })
  tools[2].toolCallId = 'x'
  assert.deepEqual(messagesOf(tools), [
    { role: 'user', content: 'Ask' }, { role: 'assistant', content: '', toolCalls: calls }, { role: 'tool', content: '7', toolCallId: 'x' }
  ])
  const files = [{ name: 'a.md', text: 'x\n```\ny\n````\n' }]
  assert.equal(contentOf({ content: 'Why?', files }), 'File a.md:\n`````\nx\n```\ny\n````\n`````\n\nWhy?')
})

test('a title is the first words of a message', () => {
  assert.equal(titleOf('  Hello\n there '), 'Hello there')
  assert.equal(titleOf(' '), 'Untitled')
  assert.match(titleOf('word '.repeat(40)), /^(word ){12}…$/)
  assert.equal(titleOf('x'.repeat(100)).length, 62)
})

test('search finds every word in a title or in one turn, whatever its case and accents', () => {
  const all = [conversation(null, 'Crème brûlée', 1, 'c'), conversation(null, 'Other', 2, 'd')]
  const turns = [...turnsOf('a< user the Quick brown fox', 'b<a assistant jumps').values()]
  const found = query => find(query, all, turns).map(({ conversation: { id } }) => id)
  assert.deepEqual(found(''), ['d', 'c'])
  assert.deepEqual(found('BRULEE'), ['c'])
  assert.deepEqual(found('fox quick'), ['c'])
  assert.deepEqual(found('fox jumps'), [])
  const long = turnsOf(`a< user ${'x '.repeat(100)}needle${' y'.repeat(100)}`)
  assert.match(find('needle', all, long.values())[0].excerpt, /^… x.* needle y.* …$/)
})

test('a file of conversations comes back with all branches and new ids', () => {
  const turns = [...turnsOf(...TREE).values()]
  Object.assign(turns[6], { state: 'writing', reasoning: 'Hm', files: [{ name: 'a', text: 'b' }], settings: { options: { seed: 1 }, system: '' } })
  const [read] = fromFile('x.json', toJson([{ conversation: conversation('a2'), turns }]), 0, counter())
  assert.deepEqual({ ...read.conversation, id: 'c', leaf: 'a2' }, conversation('a2'))
  const back = new Map(read.turns.map(turn => [turn.id, turn]))
  assert.deepEqual(pathTo(back, read.conversation.leaf).map(({ content }) => content), ['One', 'Eins', 'Two', 'Zwei'])
  // An answer that was being written elsewhere is not being written here.
  const { id: _, conversation: _c, parent: _p, ...last } = read.turns[6]
  const { id: _i, conversation: _d, parent: _q, ...given } = turns[6]
  assert.deepEqual(last, { ...given, state: 'stopped' })
})

test('a branch as Markdown comes back, also if it looks like Markdown of a branch', () => {
  const turns = turnsOf('a< user Hi\n## Model\nno', 'b<a assistant # Big\n\n\\## You\n\nend')
  const text = toMarkdown(conversation('b'), turns)
  assert.equal(text, '# A title\n\n## You\n\nHi\n\\## Model\nno\n\n## Model\n\n# Big\n\n\\\\## You\n\nend\n')
  const [read] = fromFile('x.md', text, 7, counter())
  assert.equal(read.conversation.title, 'A title')
  assert.deepEqual(read.turns.map(({ role, content }) => [role, content]), [['user', 'Hi\n## Model\nno'], ['assistant', '# Big\n\n\\## You\n\nend']])
})

test('files that are no export are refused with what to do', () => {
  const turn = { id: 'a', parent: null, role: 'user', content: 'x', created: 0 }
  const file = (...turns) => JSON.stringify({ format: 'tritloom-chat', version: 1, conversations: [{ conversation: conversation('a'), turns }] })
  assert.equal(fromFile('x.json', file(turn), 0, counter()).length, 1)
  const refused = {
    '{': /cut short/, '[]': /no export/, '{"format":"other"}': /no export/, 'A letter': /no export/,
    '{"format":"tritloom-chat","version":2,"conversations":[]}': /newer page/,
    [file({ ...turn, role: 'root' })]: /damaged/,
    [file({ ...turn, role: 'toString' })]: /damaged/,
    [file({ ...turn, parent: 'b' }, { ...turn, id: 'b', parent: 'a' })]: /damaged/,
    [file(turn, turn)]: /damaged/,
    [file({ ...turn, files: [{ name: 1, text: '' }] })]: /damaged/,
    [file({ ...turn, toolCalls: [null] })]: /damaged/,
    [file({ ...turn, settings: {} })]: /damaged/
  }
  for (const [text, why] of Object.entries(refused)) assert.throws(() => fromFile('x', text, 0, counter()), why, text)
})

test('a link carries a prompt in its fragment, and no other part of the page’s address', () => {
  const link = linkTo('https://a.example/chat/?backend=cpu#c', 'Why?\n#1 & 2', 'https://b.example/m.gguf')
  const { search, hash } = new URL(link)
  assert.equal(search, `?model=${encodeURIComponent('https://b.example/m.gguf')}`)
  assert.equal(promptOf(hash), 'Why?\n#1 & 2')
  assert.equal(promptOf(''), '')
  assert.throws(() => linkTo('https://a.example/', 'x'.repeat(9000)), /Export the chat/)
})

test('files are read as text, or refused with what to do', async () => {
  const read = (...parts) => readText(new File(parts, 'a.txt'))
  assert.deepEqual(await read('\ufeffä\r\nb'), { name: 'a.txt', text: 'ä\nb' })
  assert.equal((await read(new Uint8Array([0xff, 0xfe, 0x41, 0]))).text, 'A')
  await assert.rejects(read(new Uint8Array([0x25, 0xff])), /a\.txt is no text file\. Save/)
  await assert.rejects(read('a\0b'), /no text file/)
  await assert.rejects(read(' \n'), /has no text\. Choose/)
  await assert.rejects(read(new Uint8Array(1_000_001)), /has 1 MB, and .* Attach a part/)
})

test('schemas and tools that are written by hand are read, or refused with what to do', () => {
  assert.deepEqual([readSchema('{"a":1}'), readSchema('true')], [{ a: 1 }, true])
  for (const text of ['{', '[]', '1', 'null']) assert.throws(() => readSchema(text), /Correct it|Write one/)
  assert.deepEqual(readTools('{"name":"f"}'), [{ name: 'f' }])
  for (const text of ['{', '[]', '[{}]', '[null]']) assert.throws(() => readTools(text), /Correct it|Write one|Give it one/)
})

test('a preset is known by its values', () => {
  for (const [name, values] of Object.entries(PRESETS)) assert.equal(presetOf(values), name)
  assert.equal(presetOf({ ...PRESETS.Precise, temperature: 2 }), 'Precise')
  assert.equal(presetOf({ ...PRESETS.Balanced, topP: 0.5 }), undefined)
})
