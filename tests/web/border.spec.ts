// The border between a page and the model: arguments that are refused before they cross it,
// messages of others, and generations that are stopped before they begin.
import { expect, failure, load, RANDOM_MODEL, test } from './harness'

test.use({ backend: 'cpu' })

/** Values that are no object, as JavaScript. */
const NO_OBJECTS = ['null', '7', `'use'`, 'true', '[]', '() => {}']

test('every call refuses options that are no object', { tag: '@quick' }, async ({ shared }) => {
  await load(shared, {}, RANDOM_MODEL)
  const calls = (options: string) => [
    `BitNet.load('${RANDOM_MODEL}', ${options})`,
    `model.generate('x', ${options}).text()`,
    `model.createChat(${options})`,
    `model.createChat().send('x', ${options}).text()`,
    `model.tokenize('x', ${options})`
  ]
  for (const options of NO_OBJECTS) {
    for (const call of calls(options)) {
      const found = await failure(shared, `await ${call}`)
      expect(found, call).toEqual({
        code: 'bad-option', message: 'bad option `options`: must be an object'
      })
    }
  }
})

test('wrong arguments are refused by name, in the words of JavaScript', async ({ shared }) => {
  await load(shared, {}, RANDOM_MODEL)
  const refused: Record<string, RegExp> = {
    [`BitNet.cache.delete('http://')`]: /`url`: `http:\/\/` is not a valid URL/,
    [`BitNet.cache.verify('http://')`]: /`url`: `http:\/\/` is not a valid URL/,
    'BitNet.cache.delete(null)': /`url`: must be a string or a URL/,
    'BitNet.cache.delete({})': /`url`: must be a string or a URL/,
    'BitNet.load(null)': /`source`/,
    [`BitNet.load('${RANDOM_MODEL}', { signal: null })`]: /`signal`: must be an AbortSignal/,
    [`BitNet.load('${RANDOM_MODEL}', { onProgress: 5 })`]: /`onProgress`: must be a function/,
    [`BitNet.load('${RANDOM_MODEL}', { worker: null })`]: /`worker`: must be true, false or/,
    [`BitNet.load('${RANDOM_MODEL}', { gpu: null })`]: /`gpu`: must be an object/,
    [`BitNet.load('${RANDOM_MODEL}', { gpu: { limits: null } })`]: /`gpu.limits`: must be an obj/,
    [`BitNet.load('${RANDOM_MODEL}', { context: () => 5 })`]: /bad option/,
    [`model.generate('x', { signal: 'no' }).text()`]: /`signal`: must be an AbortSignal/,
    [`model.createChat({ sytem: 'x' })`]: /`sytem`: no such option/,
    'model.createChat({ system: 5 })': /`system`: must be a string/,
    'model.createChat({ system: null })': /`system`: must be a string/,
    'model.createChat({ messages: null })': /`messages`: must be an array/,
    'model.createChat({ messages: [null] })': /`messages\[0\].role`: must be one of system, user/,
    [`model.createChat({ messages: [{ role: 'user' }] })`]: /`messages\[0\].content`: must be a/,
    [`model.createChat({ overflow: 'drop' })`]: /`overflow`: must be 'error' or 'slide'/,
    'model.createChat().send(5).text()': /`text`: must be a string/,
    'model.createChat().send(null).text()': /`text`: must be a string/,
    'model.createChat({ raw: true })': /`raw`: no such option/,
    [`model.createChat().send('x', { prefix: 5 })`]: /`prefix`: must be a string/,
    [`model.createChat().send('x', { prefix: '' }).text()`]: /`prefix`: an answer that is begun must not be empty/,
    [`model.createChat({ maxTokens: 0 }).send('x').text()`]: /`maxTokens`: must be/,
    [`model.createChat({ responseFormat: { type: 'json_object' } })`]: /`responseFormat`: no such option/,
    [`model.createChat().send('x', { prefix: '{1', responseFormat: { type: 'json_object' } }).text()`]:
      /`prefix`: no answer of this format begins so: "1" may not follow "{"/,
    'model.createChat().regenerate()': /`regenerate`: there is no message to answer again/,
    'model.createChat().continue()': /`continue`: there is no answer that could go on/,
    [`model.createChat().edit(0, 'x')`]: /`index`: must be that of one of the 0 messages/,
    [`model.generate([{ role: 'user', content: 'x', prefix: true }]).text()`]: /`messages\[0\].prefix`: only the last/,
    [`model.generate([{ role: 'assistant', content: 'x', prefix: 1 }]).text()`]: /`messages\[0\].prefix`: must be true or/,
    [`model.generate([{ role: 'assistant', content: 'x', prefix: true }, { role: 'user', content: 'x' }]).text()`]:
      /`messages\[0\].prefix`: only the last/,
    [`model.generate([{ role: 'assistant', content: 'x', prefix: true }]).text()`]: /`messages`: must have a message before/,
    [`model.tokenize('x', { special: 1 })`]: /`special`: must be true or false/,
    [`model.tokenize('x', { raw: true })`]: /`raw`: no such option/,
    [`model.profile('all')`]: /`position`: must be an integer from 0 to 4294967295/,
    'model.profile(0, 1.5)': /`tokens`: must be an integer from 0 to 4294967295/,
    'model.profile(-1)': /`position`: must be an integer from 0 to 4294967295/,
    'model.profile(0, 1, { topP: 2 })': /`topP`: must be a number above 0 and at most 1/,
    'model.profile(0, 1, { maxTokens: 2 })': /`maxTokens`: there is no such option/,
    'model.profile(0, 1, null)': /`options`: must be an object/
  }
  for (const [call, message] of Object.entries(refused)) {
    const found = await failure(shared, `await ${call}`)
    expect(found, call).toEqual({ code: 'bad-option', message: expect.stringMatching(message) })
  }
  // The model is none the worse.
  expect(await shared.evaluate(() => window.model.countTokens('x'))).toBe(1)
})

test("messages of the caller's own disturb neither worker nor page", async ({ shared }) => {
  const found = await shared.evaluate(async url => {
    const all = [null, 7, 'load', {}, [], { kind: 'result' }, { kind: 'none', id: 1 }]
    const script = `
      import '${location.origin}/pkg/protocol/worker.js'
      addEventListener('message', ({ data }) => {
        if (data?.kind !== 'call') postMessage(data)
      })`
    const blob = new Blob([script], { type: 'text/javascript' })
    const worker = new Worker(URL.createObjectURL(blob), { type: 'module' })
    let echoes = 0
    worker.addEventListener('message', ({ data }) => {
      if (all.some(message => JSON.stringify(message) === JSON.stringify(data))) echoes += 1
    })
    const model = await window.tritloom.BitNet.load(url, { worker })
    for (const message of all) worker.postMessage(message)
    const logits = await model.logits(Uint32Array.of(1))
    return { logits: logits.length, echoes, all: all.length }
  }, RANDOM_MODEL)
  expect(found).toEqual({ logits: 320, echoes: found.all, all: found.all })
})

for (const [worker, where] of [[true, 'in a worker'], [false, 'in this thread']] as const) {
  test(`a generation stopped before it begins computes nothing, ${where}`, async ({ shared }) => {
    await load(shared, worker ? {} : { worker }, RANDOM_MODEL)
    const found = await shared.evaluate(async () => {
      const controller = new AbortController()
      // The second waits for the first, and is aborted meanwhile.
      const first = window.model.generate('x', { maxTokens: 8 })
      const second = window.model.generate('x', { signal: controller.signal })
      controller.abort(new Error('enough'))
      const text = await second.text().catch(error => error.message)
      const { completionTokens, promptTokens } = await first.stats
      return { completionTokens, promptTokens, text, stats: await second.stats, dead: await window.model
        .generate('x', { signal: AbortSignal.abort() }).stats }
    })
    const nothing = { promptTokens: found.promptTokens, completionTokens: 0, finishReason: 'abort' }
    expect(found.completionTokens).toBeGreaterThan(0)
    expect(found.text).toBe('enough')
    expect(found.stats).toMatchObject(nothing)
    expect(found.dead).toMatchObject(nothing)
    // The same fields as any other statistics have.
    const fields = await shared.evaluate(async () =>
      Object.keys(await window.model.generate('x', { maxTokens: 1 }).stats).sort())
    expect(Object.keys(found.stats).sort()).toEqual(fields)
  })
}
