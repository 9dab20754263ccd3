// `Summarizer` and `DecisionModel` without a browser, with a model that echoes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  entry, expectAborts, expectNoProgressAfterAbort, expectProgress, expectStreamAborts, fails, given, OTHER, PROMPT, textsOf, wrong
} from './drafts.mjs'
import { echo } from './echo.mjs'

const { DecisionModel, Summarizer } = entry
const create = options => {
  given(echo({ contextLength: 400 }))
  return Summarizer.create(options)
}
const TEXT = 'A nightingale sings at night. It is small and brown.'

test('Summarizer: availability, with all plausible options', async () => {
  given(echo())
  assert.equal(await Summarizer.availability(), 'available')
  for (const type of [undefined, 'tldr', 'teaser', 'key-points', 'headline']) {
    for (const format of [undefined, 'plain-text', 'markdown']) {
      for (const length of [undefined, 'short', 'medium', 'long']) {
        const languages = { expectedInputLanguages: ['en-GB'], expectedContextLanguages: [], outputLanguage: 'es' }
        assert.equal(await Summarizer.availability({ type, format, length, ...languages }), 'available')
      }
    }
  }
})

test('Summarizer: unavailable for languages that the model does not know', async () => {
  given(echo(), { languages: ['en'] })
  assert.equal(await Summarizer.availability({ expectedInputLanguages: ['en-GB'], expectedContextLanguages: ['EN'], outputLanguage: 'en' }), 'available')
  for (const options of [{ expectedInputLanguages: ['es'] }, { expectedContextLanguages: ['en', 'fr'] }, { outputLanguage: 'es' }]) {
    assert.equal(await Summarizer.availability(options), 'unavailable')
    await fails(Summarizer.create(options), 'NotSupportedError')
  }
})

test('Summarizer: options that are wrong', async () => {
  given(echo())
  for (const call of [Summarizer.availability, Summarizer.create]) {
    for (const options of [{ type: 'tl;dr' }, { format: 'html' }, { length: 'huge' }, { preference: 'best' }, { expectedInputLanguages: 'en' }, 7]) {
      await wrong(call(options))
    }
    await wrong(call({ expectedInputLanguages: ['en-abc-invalid'] }), RangeError)
    await wrong(call({ outputLanguage: 'e' }), RangeError)
  }
})

test('Summarizer: facts that are too long for the model', async () => {
  const { info: { contextLength } } = given(echo())
  const sharedContext = 'fact '.repeat(contextLength).trim()
  const expected = { name: 'QuotaExceededError', requested: contextLength + 2, quota: contextLength }
  await assert.rejects(Summarizer.create({ sharedContext }), expected)
  assert.ok(await Summarizer.create({ sharedContext: ' ' }))
})

test('Summarizer: a session has the calls and attributes of the draft', async () => {
  const session = await create()
  assert.ok(session instanceof Summarizer)
  for (const name of ['summarize', 'summarizeStreaming', 'measureInputUsage', 'destroy']) assert.equal(typeof session[name], 'function')
  const { type, format, length, sharedContext, expectedInputLanguages, expectedContextLanguages, outputLanguage, inputQuota } = session
  assert.deepEqual(
    [type, format, length, sharedContext, expectedInputLanguages, expectedContextLanguages, outputLanguage, inputQuota],
    ['key-points', 'markdown', 'short', '', null, null, null, Infinity]
  )
  const other = await create({
    type: 'headline', format: 'plain-text', length: 'medium', sharedContext: 'For children.', expectedInputLanguages: ['EN', 'en'],
    expectedContextLanguages: ['en-gb'], outputLanguage: 'DE', preference: 'speed'
  })
  assert.deepEqual([other.type, other.format, other.length, other.sharedContext], ['headline', 'plain-text', 'medium', 'For children.'])
  assert.deepEqual([other.expectedInputLanguages, other.expectedContextLanguages, other.outputLanguage], [['en'], ['en-GB'], 'de'])
  assert.ok(Object.isFrozen(other.expectedInputLanguages))
  assert.throws(() => new Summarizer(), TypeError)
})

test('Summarizer: the monitor hears of progress, and of none after an abort', async () => {
  assert.ok(await expectProgress(create) instanceof Summarizer)
  await expectNoProgressAfterAbort(create)
})

test('Summarizer: the model is asked for what the options say', async () => {
  const model = given(echo({ contextLength: 400, says: () => 'Birds sing. Owls listen. Foxes sleep. Bats fly. Mice hide.' }))
  const session = await Summarizer.create({ type: 'tldr', length: 'medium', sharedContext: 'For children.', outputLanguage: 'de' })
  assert.equal(await session.summarize(TEXT, { context: 'About a bird.' }), 'Birds sing. Owls listen. Foxes sleep.')
  const [{ content }] = model.asked[0].messages
  for (const said of ['For children.', 'About a bird.', 'Write in German.', 'three sentences', 'Markdown', TEXT]) assert.ok(content.includes(said), said)
})

test('Summarizer: summaries and streams are texts, and an empty input has an empty one', async () => {
  const session = await create({ type: 'tldr' })
  const summary = await session.summarize(PROMPT)
  assert.ok(summary.length > 0)
  const stream = session.summarizeStreaming(PROMPT)
  assert.ok(stream instanceof ReadableStream)
  const texts = await textsOf(stream)
  assert.ok(texts.length > 1)
  assert.equal(texts.join(''), summary)
  for (const nothing of ['', ' \n']) {
    assert.equal(await session.summarize(nothing), '')
    assert.deepEqual(await session.summarizeStreaming(nothing).getReader().read(), { done: true, value: undefined })
  }
})

test('Summarizer: several summaries run side by side', async () => {
  const model = given(echo({ contextLength: 400 }))
  const session = await Summarizer.create()
  const [one, two, other] = await Promise.all([session.summarize(PROMPT), session.summarize(PROMPT), session.summarize(OTHER)])
  assert.equal(one, two)
  assert.notEqual(one, other)
  assert.equal(model.most, 3)
})

test('Summarizer: several streams run side by side', async () => {
  const session = await create()
  const [one, two, other] = await Promise.all([PROMPT, PROMPT, OTHER].map(text => textsOf(session.summarizeStreaming(text))))
  assert.deepEqual(one, two)
  assert.notDeepEqual(one, other)
})

test('Summarizer: a text that is longer than the context', async () => {
  const model = given(echo({ contextLength: 400, says: messages => messages[0].content.slice(-20) }))
  assert.ok(await (await Summarizer.create()).summarize(`${TEXT} `.repeat(90)))
  assert.ok(model.asked.length > 2)
})

test('Summarizer: measureInputUsage counts the text and its context', async () => {
  const session = await create()
  const usage = await session.measureInputUsage(PROMPT)
  assert.ok(usage > 0)
  assert.ok(await session.measureInputUsage(PROMPT, { context: OTHER }) > usage)
})

test('Summarizer: aborts end all calls with the signal\'s reason', async () => {
  await expectAborts(signal => create({ signal }))
  const session = await create()
  await expectAborts(signal => session.summarize(PROMPT, { signal }))
  await expectAborts(signal => session.measureInputUsage(PROMPT, { signal }))
  await expectStreamAborts(signal => session.summarizeStreaming(PROMPT, { signal }))
})

test('Summarizer: after an abort the session goes on', async () => {
  const session = await create()
  const stop = new AbortController()
  const running = session.summarize(PROMPT, { signal: stop.signal })
  stop.abort()
  await fails(running, 'AbortError')
  assert.ok(await session.summarize(PROMPT))
})

test('Summarizer: after an aborted stream the session goes on, and a late abort does nothing', async () => {
  const session = await create()
  const [stop, late] = [new AbortController(), new AbortController()]
  const stream = session.summarizeStreaming(PROMPT, { signal: stop.signal })
  stop.abort()
  await fails(textsOf(stream), 'AbortError')
  assert.ok((await textsOf(session.summarizeStreaming(PROMPT, { signal: late.signal }))).length > 0)
  late.abort()
})

test('Summarizer: destroy ends calls and streams, now and later', async () => {
  const session = await create()
  const running = session.summarize(PROMPT)
  const stream = session.summarizeStreaming(PROMPT)
  session.destroy()
  await fails(running, 'InvalidStateError')
  await fails(textsOf(stream), 'InvalidStateError')
  await fails(session.summarize(PROMPT), 'InvalidStateError')
  await fails(session.measureInputUsage(PROMPT), 'InvalidStateError')
  assert.throws(() => session.summarizeStreaming(PROMPT), { name: 'InvalidStateError' })
  assert.equal(session.type, 'key-points')
})

test('Summarizer: texts that are none', async () => {
  const session = await create()
  await wrong(session.summarize())
  await wrong(session.summarize(Symbol('x')))
  await wrong(session.summarize('x', { signal: 1 }))
  await wrong(session.summarize('x', 'y'))
  assert.throws(() => session.summarizeStreaming(), TypeError)
})

const QUESTIONS = [
  { id: 'happy', prompt: 'Is the customer happy?', type: 'boolean' },
  { id: 'topic', prompt: 'What is it about?', type: 'choice', options: [{ label: 'lamp', description: 'a light' }, { label: 'parcel' }] },
  { id: 'urgency', prompt: 'How urgent is it?', type: 'score' }
]

test('DecisionModel: decisions by the ids of their questions', async () => {
  const model = given(echo())
  assert.equal(await DecisionModel.availability({ questions: QUESTIONS }), 'available')
  const session = await expectProgress(options => DecisionModel.create({ ...options, context: 'A shop.', questions: new Set(QUESTIONS) }))
  assert.ok(session instanceof DecisionModel && session.preference === 'auto')
  const found = await session.decide(TEXT)
  assert.deepEqual(Object.keys(found), ['happy', 'topic', 'urgency'])
  assert.deepEqual(found.topic, { id: 'topic', label: 'lamp', confidence: 0.5, probabilities: { lamp: 0.5, parcel: 0.5 } })
  assert.deepEqual([found.happy.label, found.urgency.expectedScore], ['yes', 3])
  const [{ context, questions, text }] = model.asked
  assert.deepEqual([context, text, questions[0]], ['A shop.', TEXT, { question: 'Is the customer happy?', type: 'boolean' }])
  assert.deepEqual(questions[1].options, [{ label: 'lamp', description: 'a light' }, { label: 'parcel' }])
  assert.deepEqual(await (await DecisionModel.create()).decide(TEXT), {})
})

test('DecisionModel: options and texts that are wrong', async () => {
  given(echo())
  const [boolean, choice, score] = QUESTIONS
  const { options: _, ...without } = choice
  for (const questions of [
    7, [null], [{ ...boolean, id: undefined }], [{ ...boolean, prompt: undefined }], [{ ...boolean, prompt: '' }], [{ ...boolean, type: 'maybe' }],
    [boolean, boolean], [without], [{ ...choice, options: [{ label: 'one' }] }], [{ ...choice, options: [{ label: 'one' }, { label: 'one' }] }],
    [{ ...choice, options: [{}, {}] }], [{ ...boolean, options: choice.options }]
  ]) {
    await wrong(DecisionModel.create({ questions }))
    await wrong(DecisionModel.availability({ questions }))
  }
  const scored = (...labels) => ({ questions: [{ ...score, options: labels.map(label => ({ label })) }] })
  assert.ok(await DecisionModel.create(scored(0, ' -2.5', '+.5', '1e3 ')))
  for (const label of ['low', '', '0x10', '1e999', 'NaN']) await wrong(DecisionModel.create(scored('1', label)))
  await wrong(DecisionModel.create({ preference: 'best' }))
  assert.equal(await DecisionModel.availability({ expectedInputs: [{ type: 'image' }] }), 'unavailable')
  await fails(DecisionModel.create({ expectedInputs: [{ type: 'image' }] }), 'NotSupportedError')
  await wrong((await DecisionModel.create({ questions: QUESTIONS })).decide())
  assert.throws(() => new DecisionModel(), TypeError)
})

test('DecisionModel: aborts and destroy', async () => {
  given(echo())
  await expectAborts(signal => DecisionModel.create({ signal }))
  const session = await DecisionModel.create({ questions: QUESTIONS, preference: 'speed' })
  await expectAborts(signal => session.decide(TEXT, { signal }))
  const running = session.decide(TEXT)
  session.destroy()
  await fails(running, 'InvalidStateError')
  await fails(session.decide(TEXT), 'InvalidStateError')
  assert.equal(session.preference, 'speed')
})
