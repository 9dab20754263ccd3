// Formats of answers without a model: the checks of the option, the module of grammars, and the values of
// JSON that is not complete.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { inRoot } from '../../scripts/paths.mjs'
import { allowed, encode, largeModel, made, MODEL, TRUE } from './grammars.mjs'

const { portableOptions } = await import('../../pkg/page/format.js')
const portableFormat = responseFormat => portableOptions({ responseFormat }).responseFormat
const { Formats } = await import('../../pkg/crate/formats.js')
const { closing, partials } = await import('../../pkg/partial.js')
const { BitNetError } = await import('../../pkg/error.js')
const { Generation } = await import('../../pkg/generation.js')

const idsOf = text => [...text].map(c => c.charCodeAt(0))
const refusal = (work, said) => assert.throws(work, error => {
  assert.ok(error instanceof BitNetError, String(error))
  assert.equal(error.code, 'bad-option')
  assert.match(error.message, said)
  return true
})

test('every form of the option becomes a kind and a text', () => {
  const schema = { type: 'object', properties: { b: {}, a: {} } }
  const standard = { '~standard': { version: 1, jsonSchema: { input: ({ target }) => ({ target }) } } }
  const callable = Object.assign(() => {}, standard)
  const old = { toJSONSchema: () => ({ type: 'null' }) }
  for (const [format, kind, text] of [
    [{ type: 'json_schema', schema }, 'json_schema', JSON.stringify(schema)],
    [{ type: 'json_schema', schema: true }, 'json_schema', 'true'],
    [{ type: 'json_schema', schema: standard }, 'json_schema', '{"target":"draft-2020-12"}'],
    [{ '~standard': { jsonSchema: { kind: 'null', input() { return { type: this.kind } } } } }, 'json_schema', '{"type":"null"}'],
    [standard, 'json_schema', '{"target":"draft-2020-12"}'],
    [callable, 'json_schema', '{"target":"draft-2020-12"}'],
    [old, 'json_schema', '{"type":"null"}'],
    [{ type: 'json_object' }, 'json_object', ''],
    [{ type: 'regex', pattern: 'a|b' }, 'regex', 'a|b'],
    [{ type: 'regex', pattern: /a\/b/u }, 'regex', 'a\\/b'],
    [/[0-9]+/g, 'regex', '[0-9]+'],
    // Of another frame.
    [runInNewContext('/a|b/'), 'regex', 'a|b'],
    [{ type: 'regex', pattern: runInNewContext('/a|b/') }, 'regex', 'a|b'],
    [{ type: 'lark', grammar: 'start: "a"' }, 'lark', 'start: "a"']
  ]) {
    assert.deepEqual(portableFormat(format), { kind, text })
  }
})

test('what is no format is refused by its part', () => {
  const circular = {}
  circular.properties = circular
  const failing = { '~standard': { jsonSchema: { input: () => { throw new Error('a date') } } } }
  const unreadable = { get type() { throw new RangeError('not here') } }
  const hidden = { get '~standard'() { throw Object.create(null) } }
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  for (const [format, said] of [
    [null, /`responseFormat`: must be an object/],
    ['json', /`responseFormat`: must be an object/],
    [{}, /`responseFormat\.type`: must be 'json_schema', 'json_object', 'regex' or 'lark'/],
    [{ type: 'json_schema' }, /`responseFormat\.schema`: must be a JSON schema/],
    [{ type: 'json_schema', schema: [] }, /`responseFormat\.schema`: must be a JSON schema/],
    [{ type: 'json_schema', schema: {}, strict: true }, /`responseFormat\.strict`: there is no such option/],
    [{ type: 'json_schema', schema: circular }, /`responseFormat\.schema`: cannot be written as JSON/],
    [{ type: 'json_schema', schema: failing }, /`responseFormat\.schema`: has no JSON schema: a date/],
    [{ type: 'json_schema', schema: { minimum: 5n } }, /`responseFormat\.schema`: cannot be written as JSON/],
    [{ type: 'json_schema', schema: new Map([['type', 'string']]) }, /`responseFormat\.schema`: must be a JSON schema/],
    [{ toJSONSchema: async () => ({ type: 'string' }) }, /`responseFormat`: must be a JSON schema/],
    [{ type: 'json_schema', schema: { toJSON: () => undefined } }, /`responseFormat\.schema`: must be a JSON schema/],
    [unreadable, /`responseFormat`: cannot be read: not here/],
    [hidden, /`responseFormat`: has no JSON schema: object/],
    [proxy, /`responseFormat`: cannot be read/],
    [{ '~standard': { version: 1 } }, /`responseFormat`: is a schema that does not give its JSON schema/],
    [{ type: 'regex', pattern: 5 }, /`responseFormat\.pattern`: must be a string/],
    [/a/i, /`responseFormat`: must have no flags but/],
    [/[\p{L}--[a-z]]/v, /`responseFormat`: must have no flags but/],
    [{ type: 'lark', grammar: null }, /`responseFormat\.grammar`: must be a string/]
  ]) {
    refusal(() => portableFormat(format), said)
  }
})

test('a matcher gives masks, what is forced and the end', async () => {
  const formats = await made()
  const text = JSON.stringify({ type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'], additionalProperties: false })
  const { grammar, release } = formats.hold({ kind: 'json_schema', text })
  const [one, other] = [grammar.matcher(''), grammar.matcher('')]
  assert.deepEqual(one.follow(), idsOf('{"a":'))
  assert.deepEqual(allowed(one.follow()), [...idsOf('ft'), TRUE])
  one.take(TRUE)
  assert.deepEqual(one.follow(), idsOf('}'))
  assert.equal(one.follow(), undefined)
  assert.throws(() => one.take(5), { name: 'internal' })
  one.free()
  release()
  // The other goes on by itself.
  assert.deepEqual(other.follow(), idsOf('{"a":'))
  other.free()
})

test('a matcher begins with a text, or says why not', async () => {
  const { grammar } = (await made()).hold({ kind: 'json_schema', text: '{"const":["é",true]}' })
  assert.deepEqual(grammar.matcher('["é",t').follow(), idsOf('rue]'))
  assert.equal(grammar.matcher('["é",true]').follow(), undefined)
  assert.throws(() => grammar.matcher('["é",x'), { name: 'bad-option', message: /"x" may not follow "\[\\"é\\","/ })
  assert.deepEqual(grammar.matcher('').follow(), idsOf('["').concat(0xc3, 0xa9, idsOf('",true]')))
})

test('what is forced has the tokens of the tokenizer', async () => {
  const asked = []
  const formats = await made({ ...MODEL, encodeWithin: text => (asked.push(text), encode(text)) })
  const { grammar } = formats.hold({ kind: 'json_schema', text: '{"const":true}' })
  assert.deepEqual(grammar.matcher('').follow(), [TRUE])
  assert.ok(asked.includes('true'))
  // U+FEFF is a character like others.
  formats.hold({ kind: 'regex', text: '\ufeffab' }).grammar.matcher('').follow()
  assert.ok(asked.includes('\ufeffab'))
})

test('a format that is not supported is refused by its JSON pointer, and the next one is prepared', async () => {
  const formats = await made()
  const hold = (kind, text) => () => formats.hold({ kind, text })
  refusal(hold('json_schema', '{"properties":{"a":{"not":{}}}}'), /`responseFormat\.schema`: `\/properties\/a\/not` of the schema is not supported/)
  refusal(hold('json_schema', '{'), /`responseFormat\.schema`: the schema cannot be read as JSON/)
  refusal(hold('regex', '('), /`responseFormat`: the regular expression is wrong/)
  refusal(hold('lark', 'start: a'), /`responseFormat`: the grammar is wrong/)
  const matcher = formats.hold({ kind: 'lark', text: 'start: start' }).grammar.matcher('')
  assert.throws(() => matcher.follow(), { name: 'bad-option' })
  const { grammar } = formats.hold({ kind: 'json_object', text: '' })
  assert.deepEqual(grammar.matcher('').follow(), idsOf('{'))
  const broken = { ...MODEL, vocabulary: () => new Uint8Array(3) }
  await assert.rejects(made(broken), error => error instanceof BitNetError && error.code === 'unsupported-model')
})

test('formats that are used stay, others go when there are many', async () => {
  const formats = await made()
  const hold = n => formats.hold({ kind: 'regex', text: `a{${n}}` })
  const held = Array.from({ length: 20 }, (_, n) => hold(n + 1))
  for (const [n, { grammar }] of held.entries()) {
    const matcher = grammar.matcher('')
    assert.deepEqual(matcher.follow(), idsOf('a'.repeat(n + 1)))
    matcher.free()
  }
  held.forEach(({ release }) => release())
  assert.throws(() => held[0].grammar.matcher(''), { name: 'internal' })
  assert.deepEqual(held.at(-1).grammar.matcher('').follow(), idsOf('a'.repeat(20)))
  assert.deepEqual(hold(1).grammar.matcher('').follow(), idsOf('a'))
})

test('a crash of the module is an error, and it is told', async () => {
  let fails = false
  const formats = await made({ ...MODEL, encodeWithin: text => { if (fails) throw new Error('gone'); return encode(text) } })
  const hold = text => formats.hold({ kind: 'regex', text })
  // More than are kept when no call uses them.
  const held = Array.from({ length: 20 }, (_, n) => hold(`abc{${n}}`))
  const [matcher, other] = [held[1].grammar.matcher(''), held[1].grammar.matcher('')]
  let told = 0
  formats.onCrash = () => { told += 1 }
  fails = true
  assert.throws(() => matcher.follow(), { name: 'internal', message: /crashed: Error: gone/ })
  // Calls that still use it get the same error, and nothing hides it.
  assert.throws(() => other.take(1), { name: 'internal', message: /crashed/ })
  assert.throws(() => held[1].grammar.matcher(''), { name: 'internal', message: /crashed/ })
  assert.throws(() => hold('d'), error => error instanceof BitNetError && error.code === 'internal')
  for (const one of [matcher, other]) one.free()
  for (const { release } of held) release()
  assert.equal(told, 1)
})

test('the memory of formats is bounded', async () => {
  let grown = 0
  let memory
  const { instantiate } = WebAssembly
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate(...args)
    memory = instance.exports.memory
    return instance
  }
  const formats = await made({ ...MODEL, encodeWithin: text => { grow(grown); return encode(text) } })
  // Growing alone takes no memory of the machine.
  const grow = mebibytes => { if (mebibytes) memory.grow(mebibytes * 16) }
  WebAssembly.instantiate = instantiate
  let told = 0
  formats.onLarge = () => { told += 1 }
  const [one, other] = ['ab', 'cd'].map(text => formats.hold({ kind: 'regex', text }))
  grown = 300
  assert.deepEqual(one.grammar.matcher('').follow(), idsOf('ab'))
  grown = 0
  one.release()
  assert.equal(told, 0)
  other.release()
  assert.equal(told, 1)
  const matcher = formats.hold({ kind: 'regex', text: 'ef' }).grammar.matcher('')
  grown = 900
  assert.throws(() => matcher.follow(), { name: 'bad-option', message: /more than 1 GiB/ })
  assert.equal(told, 2)
})

test('a module that cannot be started is an error of the package', async () => {
  // It wants a function that it does not get.
  const strange = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 97, 1, 98, 0, 0)
  const made = Formats.of(await WebAssembly.compile(strange), MODEL)
  await assert.rejects(made, error => error instanceof BitNetError && error.code === 'internal')
})

/** No format takes longer, whatever the vocabulary: the slowest takes a second on a busy machine. */
const LONGEST = 20_000

// The stack of a module is smaller than that of a program.
for (const [size, model] of [['small', MODEL], ['large', largeModel()]]) {
  test(`absurd formats end soon with an answer or an error, and the module goes on, with a ${size} vocabulary`, async () => {
    const formats = await made(model)
    let crashed = 0
    formats.onCrash = () => { crashed += 1 }
    const kinds = { s: 'json_schema', r: 'regex', l: 'lark' }
    const folder = inRoot('tests/data/fuzz/format')
    const names = readdirSync(folder)
    assert.ok(names.length > 10)
    for (const name of names) {
      const text = readFileSync(`${folder}/${name}`, 'utf8')
      const start = performance.now()
      try {
        const { grammar, release } = formats.hold({ kind: kinds[text[0]], text: text.slice(1) })
        const matcher = grammar.matcher('')
        for (let n = 0; n < 8; n++) {
          const follow = matcher.follow()
          if (follow instanceof Uint32Array) matcher.take(allowed(follow).at(-1))
          else if (!follow) break
        }
        matcher.free()
        release()
      } catch (error) {
        assert.ok(error.code === 'bad-option' || error.name === 'bad-option', `${name}: ${error}`)
      }
      assert.equal(crashed, 0, name)
      assert.ok(performance.now() - start < LONGEST, name)
    }
  })
}

test('JSON that has only begun is closed', () => {
  for (const [text, closed] of [
    ['', ''],
    ['{', '{}'],
    ['{"a', '{}'],
    ['{"a":', '{}'],
    ['{"a":"', '{"a":""}'],
    ['{"a":"x\\', '{"a":"x"}'],
    ['{"a":"x\\u00', '{"a":"x"}'],
    ['{"a":"x\\"y', '{"a":"x\\"y"}'],
    ['{"a":"é}{', '{"a":"é}{"}'],
    ['{"a":1', '{}'],
    ['{"a":1,', '{"a":1}'],
    ['{"a":1,"b":tru', '{"a":1}'],
    ['{"a":[1,{"b":[', '{"a":[1,{"b":[]}]}'],
    ['{"a":[1,{"b":[]', '{"a":[1,{"b":[]}]}'],
    ['[1,2', '[1]'],
    ['["a","b', '["a","b"]'],
    [' [ "a" , { "b" : "c" } , ', ' [ "a" , { "b" : "c" }]'],
    ['{"a":{}}', '{"a":{}}']
  ]) {
    assert.equal(closing()(text), closed, text)
    // In parts it is the same each time.
    const close = closing()
    for (let end = 1; end <= text.length; end++) assert.equal(close(text[end - 1]), closing()(text.slice(0, end)))
  }
})

test('partials grow to the whole value, and a text that is no JSON has none', async () => {
  const read = async text => {
    const values = []
    for await (const value of partials((async function* () { yield* text })())) values.push(value)
    return values
  }
  const text = '{"name":"Mia","age":7,"tags":["a\\n"]}'
  const values = await read(text)
  assert.deepEqual(values[0], {})
  assert.deepEqual(values.at(-1), JSON.parse(text))
  assert.ok(values.some(({ name }) => name === 'Mi'))
  assert.ok(!values.some(({ age }) => age !== undefined && age !== 7))
  const unique = new Set(values.map(value => JSON.stringify(value)))
  assert.equal(unique.size, values.length)
  assert.deepEqual(await read('12'), [12])
  assert.deepEqual(await read('{"a":1} \n'), [{}, { a: 1 }])
  assert.deepEqual(await read('Hello!'), [])
})

test('json() is the value, or says that the answer is not whole', async () => {
  const answer = (text, finishReason = 'stop', begun = '') =>
    new Generation(async onToken => {
      onToken({ text: 'hm', channel: 'reasoning' })
      if (text) onToken({ text, channel: 'answer' })
      return { finishReason }
    }, undefined, () => begun)
  assert.deepEqual(await answer('{"a":1}').json(), { a: 1 })
  const values = []
  for await (const value of answer('{"a":1}').partials()) values.push(value)
  assert.deepEqual(values, [{ a: 1 }])
  // The text with which an answer begins counts, also if it is the whole.
  for (const [rest, begun] of [['1}', '{"a":'], ['', '{"a":1}']]) {
    const values = []
    for await (const value of answer(rest, 'stop', begun).partials()) values.push(value)
    assert.deepEqual(values, [{ a: 1 }])
    assert.deepEqual(await answer(rest, 'stop', begun).json(), { a: 1 })
    assert.equal(await answer(rest, 'stop', begun).text(), rest)
  }
  for (const whole of [answer('{"a":"b'), answer('12', 'length'), answer('12', 'abort'), answer('Hello')]) {
    await assert.rejects(whole.json(), error => error instanceof BitNetError && error.code === 'incomplete')
  }
  await assert.rejects(answer('', 'tool-calls').json(), { code: 'incomplete', message: /ended with calls of tools/ })
})
