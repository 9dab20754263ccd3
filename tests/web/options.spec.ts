// Every wrong value of every option and argument is a `bad-option` that says in JavaScript's terms
// what it must be.
import { expect, RANDOM_MODEL, test } from './harness'

/**
 * Values that are wrong for every option, as JavaScript. A row removes the types that it accepts.
 */
const VALUES = {
  null: ['null'],
  boolean: ['true', 'false'],
  number: ['7'],
  string: [`'5'`, `''`],
  array: ['[]', '[5]'],
  object: ['{}', 'new Date(0)', 'new Map()'],
  other: ['5n', 'Object(5)', 'new Uint8Array(4)']
}

/** Numbers that are no integer, or too large for an index. */
const NO_INTEGERS = ['-1', '0.5', '1.5', 'NaN', 'Infinity', '-Infinity', '1e300']

const othersThan = (...types: (keyof typeof VALUES)[]) =>
  Object.entries(VALUES).flatMap(([type, values]) =>
    types.includes(type as keyof typeof VALUES) ? [] : values)

/** The option, its wrong values, and what the error says of them. */
type Row = [option: string, values: string[], message: string]

const U32 = [...othersThan('number'), ...NO_INTEGERS, '4294967296']
const SIZE: [string[], string] =
  [[...othersThan('number'), ...NO_INTEGERS, '2 ** 53'], 'must be an integer from 0 to 9007199254740991']
const FLAG: [string[], string] = [[...othersThan('boolean'), '0'], 'must be true or false']
// The last two are objects without a field that the crate knows, so they are like `{}`.
const OBJECT: [string[], string] = [othersThan('object', 'other'), 'must be an object']
const UNKNOWN: [string[], string] = [['1', 'null', `'x'`], 'there is no such option']
const choice = (...names: string[]): [string[], string] => {
  const quoted = names.map(name => `'${name}'`)
  return [
    [...othersThan(), `'${names[0]!.toUpperCase()}'`, `['${names[0]}']`],
    `must be ${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
  ]
}

const LOAD: Row[] = [
  ['context', [...U32, '0'], 'must be an integer from 1 to 4294967295'],
  [
    'stallTimeout', [...othersThan('number'), '0', '0.5', '-1', 'NaN', 'Infinity', '1e10'],
    'must be a number of milliseconds from 1 to 1000000000'
  ],
  ['cache', ...choice('use', 'revalidate', 'refresh', 'only', 'off')],
  ['integrity', othersThan('string'), 'must be a string'],
  [
    'integrity', [`''`, `'sha512-AAAA'`, `'sha256-AAAA'`],
    'must be `sha256-` and the base64 of the file\'s 32-byte hash'
  ],
  ['crossOriginStorage', ...choice('read', 'offer', 'off')],
  ['backend', ...choice('auto', 'webgpu', 'cpu')],
  ['threads', [...othersThan('number'), ...NO_INTEGERS, '0', '1025'], 'must be an integer from 1 to 1024'],
  ['kv', ...choice('f16', 'f32', 'int8')],
  ['lmHead', ...choice('auto', 'f16', 'int8')],
  ['i2sLayout', ...choice('x86', 'arm')],
  ['activations', ...choice('auto', 'f32')],
  ['tokenizer', ...choice('strict', 'closest')],
  ['strict', ...FLAG],
  ['deterministic', ...FLAG],
  ['gpu', ...OBJECT],
  ['gpu.powerPreference', ...choice('low-power', 'high-performance')],
  ['gpu.maxBytes', ...SIZE],
  ['gpu.limits', ...OBJECT],
  ['gpu.limits.maxStorageBufferBindingSize', ...SIZE],
  ['gpu.limits.maxBufferSize', ...SIZE],
  ['gpu.features', ...OBJECT],
  ['gpu.features.subgroups', ...FLAG],
  ['gpu.features.packedDot', ...FLAG],
  ['gpu.features.matrixUnits', ...FLAG],
  ['gpu.features.software', ...FLAG],
  ['contxt', ...UNKNOWN],
  ['gpu.limit', ...UNKNOWN],
  ['gpu.limits.maxBuffers', ...UNKNOWN],
  ['gpu.features.f16', ...UNKNOWN]
]

const BELOW_AND_ABOVE_2 = [...othersThan('number'), '-2.000001', '2.000001', 'NaN', '-Infinity']

const GENERATE: Row[] = [
  ['maxTokens', [...U32, '0'], 'must be an integer from 1 to 4294967295'],
  [
    'temperature', [...othersThan('number'), '-1', '-1e-9', 'NaN', 'Infinity'],
    'must be a number, 0 or more'
  ],
  ['topK', U32, 'must be an integer from 0 to 4294967295'],
  [
    'topP', [...othersThan('number'), '0', '-1', '1.000001', 'NaN', 'Infinity'],
    'must be a number above 0 and at most 1'
  ],
  [
    'minP', [...othersThan('number'), '-1', '1.000001', 'NaN', 'Infinity'],
    'must be a number from 0 to 1'
  ],
  [
    'repeatPenalty', [...othersThan('number'), '0', '-1', 'NaN', 'Infinity'],
    'must be a number above 0'
  ],
  ['presencePenalty', BELOW_AND_ABOVE_2, 'must be a number from -2 to 2'],
  ['frequencyPenalty', BELOW_AND_ABOVE_2, 'must be a number from -2 to 2'],
  ['seed', U32, 'must be an integer from 0 to 4294967295'],
  ['stop', [...othersThan('array'), '[5]', `['a', null]`], 'must be an array of strings'],
  ['stop', [`['']`, `['a', '']`], 'must not contain an empty string'],
  ['promptLookup', ...FLAG],
  ['thinking', ...FLAG],
  ['maxThinkingTokens', [...U32, '0'], 'must be an integer from 1 to 4294967295'],
  ['raw', ...FLAG],
  ['special', ...FLAG],
  ['special', ['true'], 'needs `raw: true`: in a chat, no text becomes a special token'],
  [
    'logitBias', [...othersThan('object', 'other'), '{ x: 1 }', '{ 5: "1" }', '{ 1.5: 1 }', '{ "-1": 1 }', '{ 5: 101 }', '{ 5: NaN }'],
    'must be an object with a number from -100 to 100 for each id of a token'
  ],
  ['logprobs', [...U32, '21'], 'must be an integer from 0 to 20'],
  ['tools', othersThan('array'), 'must be an array'],
  ['toolChoice', [`'auto'`, `{ name: 'f' }`], 'needs `tools`'],
  ['parallelToolCalls', ...FLAG],
  ['parallelToolCalls', ['true'], 'needs `tools`'],
  ['temprature', ...UNKNOWN]
]

/** Values at the limits, which are allowed. */
const ALLOWED = [
  '{ topK: 4294967295, seed: 4294967295, temperature: 1 }',
  '{ topK: 0, seed: 0, temperature: 1e300 }',
  '{ temperature: 1e-300, topP: 1e-300, minP: 0 }',
  '{ temperature: 0.7, topP: 1, minP: 1 }',
  '{ repeatPenalty: 1e-300, presencePenalty: -2, frequencyPenalty: -2 }',
  '{ repeatPenalty: 1e300, presencePenalty: 2, frequencyPenalty: 2, temperature: 1, topK: 5 }',
  '{ logitBias: { 5: -100, 6: 100 }, logprobs: 20 }',
  '{ logitBias: {}, logprobs: 0, temperature: 1, topK: 5 }',
  `{ stop: [], promptLookup: false, raw: false, special: false }`,
  `{ stop: ['a'], topK: undefined, raw: true, special: true }`
]

const TOOL = `{ name: 'f' }`
/** The message before a result. */
const CALLED = `{ role: 'assistant', content: '', toolCalls: [{ id: '1', name: 'f', arguments: {} }] }`
const NO_CHOICE = `must be 'auto', 'none', 'required' or an object with a \`name\``

const NO_MESSAGE = 'must be an object with `role` and `content`'
const POSITION = 'must be an integer from 0 to 4294967295'

/** A call of the model, the name that the error gives, and what it says. */
const CALLS: [call: string, name: string, message: string][] = [
  ...['null', '5', `'x'`].map((message): [string, string, string] =>
    [`generate([{ role: 'user', content: 'x' }, ${message}]).text()`, 'messages[1]', NO_MESSAGE]),
  [`generate([[]]).text()`, 'messages[0]', 'must be an object'],
  [`generate([{ content: 'x' }]).text()`, 'messages[0]', 'needs a `role`'],
  [`generate([{ role: 'user' }]).text()`, 'messages[0]', 'needs a `content`'],
  [
    `generate([{ role: 'robot', content: 'x' }]).text()`, 'messages[0].role',
    `must be 'system', 'user', 'assistant' or 'tool'`
  ],
  [`generate([{ role: 'user', content: 5 }]).text()`, 'messages[0].content', 'must be a string'],
  [`generate([]).text()`, 'messages', 'must not be empty'],
  ...['null', '5', '[]'].map((choice): [string, string, string] =>
    [`generate('x', { tools: [${TOOL}], toolChoice: ${choice} }).text()`, 'toolChoice', choice === '[]' ? 'must be an object' : NO_CHOICE]),
  [`generate('x', { tools: [${TOOL}], toolChoice: { name: 'g' } }).text()`, 'toolChoice', 'there is no tool g'],
  [`generate('x', { tools: [] }).text()`, 'tools', 'must have from 1 to 128 tools'],
  [`generate('x', { tools: [5] }).text()`, 'tools[0]', 'must be an object'],
  [`generate('x', { tools: [{}] }).text()`, 'tools[0].name', 'is missing'],
  [`generate('x', { tools: [${TOOL}, ${TOOL}] }).text()`, 'tools[1].name', 'is that of tools[0] too: f'],
  [`generate('x', { tools: [{ name: 'f', run: 1 }] }).text()`, 'tools[0].run', 'there is no such option'],
  [`generate('x', { tools: [{ name: 'f', parameters: [] }] }).text()`, 'tools[0].parameters', 'must be a JSON schema'],
  [`generate('x', { tools: [{ name: 'f', parameters: { type: 'array' } }] }).text()`, 'tools[0].parameters', 'must be the schema of an object'],
  [
    `generate('x', { tools: [${TOOL}, { name: 'g', parameters: { type: 'object', properties: { a: { not: {} } } } }] }).text()`, 'tools',
    'the parameters of tools[1]: `/properties/a/not` of the schema is not supported'
  ],
  [`generate('x', { tools: [${TOOL}], raw: true }).text()`, 'tools', 'needs a chat'],
  [`generate('x', { tools: [${TOOL}], responseFormat: /a/ }).text()`, 'responseFormat', 'cannot be given together with `tools`'],
  [`generate([{ role: 'user', content: 'x' }, { role: 'tool', content: 'y' }]).text()`, 'messages[1]', 'there is no call before it'],
  [`generate([${CALLED}, { role: 'tool', content: 'y', toolCallId: '2' }]).text()`, 'messages[1].toolCallId', 'no call before it has the id 2'],
  [`generate([{ role: 'assistant', content: '', toolCalls: {} }]).text()`, 'messages[0].toolCalls', 'must be an array'],
  [`generate([{ role: 'assistant', content: 'x', toolCalls: [{ id: '1', name: 'f', arguments: 5 }] }]).text()`, 'messages[0].toolCalls[0].arguments', 'must be an object'],
  [`generate('').text()`, 'prompt', 'must not be empty'],
  [
    `generate(7).text()`, 'prompt',
    'must be a string, an array of messages or a Uint32Array of ids'
  ],
  [`tokenize(5)`, 'text', 'must be a string'],
  [`tokenize('x', { special: 'yes' })`, 'special', 'must be true or false'],
  [`detokenize([1])`, 'ids', 'must be a Uint32Array'],
  [`logits('1')`, 'ids', 'must be a Uint32Array'],
  ...['-1', '0.5', 'NaN', `'1'`, 'null', '4294967296'].flatMap((value): [string, string, string][] => [
    [`profile(${value})`, 'position', POSITION],
    [`profile(0, ${value})`, 'tokens', POSITION]
  ])
]

/** Words that Rust, serde or wasm-bindgen would use, outside of quotes. */
const RUST = /\b(u32|u64|usize|f32|f64|bool|struct|variant|invalid type|floating point|map)\b/

/** The JavaScript of an options object with `value` at the path `option`. */
const at = (option: string, value: string) =>
  option.split('.').reduceRight((inner, name) => `{ ${name}: ${inner} }`, value)

/** The failures of JavaScript expressions, each called with `BitNet` and `model`. */
const FAILURES = `async calls => {
  const found = []
  for (const call of calls) {
    try {
      await (0, eval)('(async (BitNet, model) => { await ' + call + ' })')(tritloom.BitNet, window.model)
      found.push('none')
    } catch (error) {
      found.push(error instanceof tritloom.BitNetError ? error.code + ': ' + error.message : String(error))
    }
  }
  return found
}`

test('a wrong value of any option is refused in JavaScript\'s terms', async ({ harness }) => {
  const failures = (calls: string[]): Promise<string[]> =>
    harness.evaluate(([failures, calls]) => (0, eval)(failures)(calls), [FAILURES, calls] as const)
  const check = async (rows: [call: string, message: string][]) => {
    const found = await failures(rows.map(([call]) => call))
    const table = rows.map(([call, message], index) => ({ call, message, found: found[index]! }))
    for (const { call, message, found } of table) {
      expect.soft(found, call).toContain(message)
      expect.soft(found.replace(/`[^`]*`|'[^']*'/g, ''), call).not.toMatch(RUST)
    }
  }
  const rows = (table: Row[], call: (options: string) => string) =>
    table.flatMap(([option, values, message]) => values.map((value): [string, string] =>
      [call(at(option, value)), `bad-option: bad option \`${option}\`: ${message}`]))

  const load = (worker: boolean) => (options: string) =>
    `BitNet.load('${RANDOM_MODEL}', { ...${options}, worker: ${worker} })`
  await check(rows(LOAD, load(false)))
  // A worker gets a copy of the options.
  await check(rows(LOAD.slice(0, 2).map(([option, [value], message]) => [option, [value!], message]), load(true)))

  await harness.evaluate(async url => {
    window.model = await window.tritloom.BitNet.load(url, { worker: false })
  }, RANDOM_MODEL)
  await check(rows(GENERATE, options => `model.generate('x', ${options}).text()`))
  await check(CALLS.map(([call, name, message]) =>
    [`model.${call}`, `bad-option: bad option \`${name}\`: ${message}`]))
  const allowed = ALLOWED.map(options => `model.generate('x', { ...${options}, maxTokens: 1 }).text()`)
  expect(await failures(allowed)).toEqual(allowed.map(() => 'none'))
})

test('an address that is none is refused by the storage too', async ({ harness }) => {
  const found = await harness.evaluate(async () => {
    const { default: start, cacheDelete, cacheVerify } = await import('/pkg/tritloom.js' as string)
    await start('/pkg/tritloom_bg.wasm')
    const calls = [cacheDelete, cacheVerify].flatMap(call =>
      ['http://', 'model.gguf', '', 5, null, undefined].map(url => call(url)))
    const outcomes = await Promise.allSettled(calls)
    return outcomes.map(outcome => outcome.status === 'rejected' ? `${outcome.reason.code}: ${outcome.reason.message}` : 'none')
  })
  expect(found.length).toBe(12)
  for (const said of found) expect(said).toMatch(/^bad-option: bad option `url`: /)
})
