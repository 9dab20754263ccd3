// Summaries without a browser: how texts are split, what the model is asked and when it is stopped,
// with a model that is made by hand. A real one summarises in tests/web/summarize.spec.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const load = name => import(new URL(`../../pkg/${name}.js`, import.meta.url))
const { divide, split } = await load('passages')
const { limit, summarize } = await load('page/summarize')
const { Generation } = await load('generation')
const { BitNetError } = await load('error')

const NEVER = new AbortController().signal
const wordsOf = text => text.split(/\s+/).filter(Boolean)
const FRAME = 4

/**
 * A model whose tokens are words. `says(text)` is what it answers to the text of a prompt; `asked`
 * has what it was asked, `stopped` how many answers were stopped, `running` those that run now.
 */
const modelOf = (says, { contextLength = 400, thinking = false, maxBatch = 1, count = text => wordsOf(text).length } = {}) => {
  const model = { info: { contextLength, thinking, maxBatch }, asked: [], stopped: 0, running: 0 }
  model.countTokens = async ([{ role, content }]) => {
    assert.equal(role, 'user')
    return FRAME + count(content)
  }
  model.generate = (prompt, options) => {
    const { signal, maxTokens } = options
    const [wish, ...text] = prompt.split(/(?<=:)\n\n/)
    const asked = { prompt, wish, text: text.join('\n\n'), options }
    model.asked.push(asked)
    const run = async (onToken, stop) => {
      const promptTokens = FRAME + count(prompt)
      assert.ok(promptTokens + (maxTokens ?? 0) <= contextLength, `${promptTokens} and ${maxTokens} tokens`)
      const stats = {
        promptTokens, reusedTokens: 1, completionTokens: 0, timeToFirstToken: 1, prefillTokensPerSecond: 10,
        decodeTokensPerSecond: 10, batch: model.running
      }
      for (const text of says(asked).match(/\s*\S+|\s+$/g) ?? []) {
        await new Promise(setImmediate)
        if (stop.aborted) {
          model.stopped += 1
          return { ...stats, finishReason: 'abort' }
        }
        if (stats.completionTokens === maxTokens) return { ...stats, finishReason: 'length' }
        stats.completionTokens += 1
        onToken({ id: 1, text, channel: 'answer' })
      }
      return { ...stats, finishReason: 'stop' }
    }
    return new Generation(async (onToken, stop) => {
      model.running += 1
      try {
        return await run(onToken, stop)
      } finally {
        model.running -= 1
      }
    }, signal)
  }
  return model
}

/** A summary as `model.summarize` gives it. */
const summaryOf = (model, text, { signal, ...options } = {}) =>
  new Generation((onToken, stop) => summarize(model, text, options, onToken, stop), signal)

/** `count` sentences of ten words each, which are all different. */
const sentencesOf = count => Array.from({ length: count }, (_, n) => `Sentence number ${n} has ten words and says nothing new.`)

const WISH = 'TL;DR of this text, one sentence:'

test('a text that fits is one prompt, without the white space of a page', async () => {
  const model = modelOf(() => ' It rained. ')
  const reports = []
  const summary = summaryOf(model, '\n  It   rained.\n \n\n  All\tday.\n', { onProgress: report => reports.push(report) })
  assert.equal(await summary.text(), 'It rained.')
  assert.deepEqual(model.asked.map(({ prompt }) => prompt), [`${WISH}\n\nIt rained.\n\nAll day.`])
  assert.deepEqual(reports, [{ done: 0, passages: 1, fraction: 0 }, { done: 1, passages: 1, fraction: 1 }])
})

test('a long text is read in passages of whole sentences, then their summaries', async () => {
  const sentences = sentencesOf(100)
  const model = modelOf(({ text }) => `First: ${wordsOf(text)[2]}.`)
  const reports = []
  const summary = summaryOf(model, sentences.join(' '), { onProgress: report => reports.push(report) })
  const said = await summary.text()
  const stats = await summary.stats
  const passages = model.asked.slice(0, -1)
  const last = model.asked.at(-1)
  // Each sentence is in one passage, in order, and none is cut.
  assert.equal(passages.map(({ text }) => text).join(' '), sentences.join(' '))
  for (const { wish, text } of passages) {
    assert.equal(wish, 'TL;DR of this text, five sentences:')
    assert.match(text, /^Sentence.*new\.$/)
  }
  // They are of about one length.
  const lengths = passages.map(({ text }) => text.length)
  assert.ok(Math.max(...lengths) < 1.3 * Math.min(...lengths), lengths.join(' '))
  const firsts = passages.map(({ text }) => `First: ${wordsOf(text)[2]}.`)
  assert.deepEqual([last.wish, last.text], [WISH, firsts.join('\n\n')])
  assert.equal(said, `First: ${wordsOf(last.text)[2]}.`)

  const steps = passages.length
  assert.deepEqual(reports.slice(0, 2), [
    { done: 0, passages: steps, fraction: 0 }, { done: 1, passages: steps, fraction: 1 / (steps + 1) }
  ])
  assert.deepEqual(reports.at(-1), { done: 1, passages: 1, fraction: 1 })
  const fractions = reports.map(({ fraction }) => fraction)
  assert.deepEqual(fractions, fractions.toSorted((a, b) => a - b))

  // The statistics are those of all prompts.
  assert.equal(stats.reusedTokens, model.asked.length)
  assert.equal(stats.completionTokens, 2 * model.asked.length)
  assert.equal(Math.round(stats.prefillTokensPerSecond), 10)
  assert.equal(Math.round(stats.decodeTokensPerSecond), 10)
  assert.equal(stats.finishReason, 'stop')
})

test('passages are summarised together, as many as the model takes, and give the same', async () => {
  const text = sentencesOf(200).join(' ')
  const first = ({ text }) => `First: ${wordsOf(text)[2]}${' and so on'.repeat(wordsOf(text)[2] % 7)}.`
  const alone = modelOf(first)
  const expected = await summaryOf(alone, text).text()

  let most = 0
  const counts = []
  const model = modelOf(asked => {
    most = Math.max(most, model.running)
    counts.push(model.running)
    return first(asked)
  }, { maxBatch: 4 })
  const reports = []
  const summary = summaryOf(model, text, { onProgress: report => reports.push(report) })
  assert.equal(await summary.text(), expected)
  assert.deepEqual(model.asked.map(({ prompt }) => prompt), alone.asked.map(({ prompt }) => prompt))
  assert.equal(most, 4)
  // The first begins alone, so that the others find in the cache what all begin with.
  assert.deepEqual([counts[0], counts.at(-1)], [1, 1])
  const { batch, promptTokens } = await summary.stats
  assert.deepEqual([batch, promptTokens], [4, model.asked.reduce((sum, { prompt }) => sum + FRAME + wordsOf(prompt).length, 0)])
  const passages = model.asked.length - 1
  const told = Array.from({ length: passages + 1 }, (_, done) => [done, passages])
  assert.deepEqual(reports.map(({ done, passages }) => [done, passages]), [...told, [0, 1], [1, 1]])
})

test('when one passage fails, the summary does, and the others are stopped', async () => {
  const model = modelOf(({ text }) => {
    if (text.startsWith('Sentence number 0 ')) return 'word '.repeat(100)
    if (model.asked.length === 3) throw new BitNetError('device-lost', 'gone')
    return 'word '.repeat(100)
  }, { maxBatch: 3 })
  const summary = summaryOf(model, sentencesOf(200).join(' '))
  await assert.rejects(summary.text(), { code: 'device-lost' })
  await assert.rejects(summary.stats, { code: 'device-lost' })
  while (model.running > 0) await new Promise(setImmediate)
  assert.equal(model.asked.length, 3)
})

test('summaries that are too long together are summarised in turn', async () => {
  const model = modelOf(({ text }) => wordsOf(text).slice(0, 40).join(' '))
  await summaryOf(model, sentencesOf(600).join(' ')).text()
  const rounds = model.asked.filter(({ text }) => text.startsWith('Sentence number 0 '))
  assert.ok(rounds.length >= 3, `${rounds.length} rounds`)
})

test('every type, length and format is asked for by name', async () => {
  const wish = async options => {
    const model = modelOf(() => 'Yes.')
    await summaryOf(model, 'It rained.', options).text()
    return model.asked[0].wish.trim()
  }
  assert.equal(await wish({ type: 'tldr', length: 'medium' }), 'TL;DR of this text, three sentences:')
  assert.equal(await wish({ type: undefined, length: 'long' }), 'TL;DR of this text, five sentences:')
  assert.equal(await wish({ type: 'teaser' }), 'A teaser of this text, one sentence:')
  assert.equal(
    await wish({ type: 'key-points', format: 'markdown' }),
    'The key points of this text, three lines that begin with "- ", in Markdown:'
  )
  assert.equal(await wish({ type: 'headline', length: 'medium' }), 'A headline of this text, at most 17 words:')
  assert.equal(await wish({ context: ' For children. ' }), `Context: For children.\n\n${WISH}`)
})

test('what begins every prompt of a summary is the same', async () => {
  const model = modelOf(() => 'Yes.')
  await summaryOf(model, sentencesOf(100).join(' '), { context: 'For children.' }).text()
  for (const { prompt } of model.asked) assert.ok(prompt.startsWith('Context: For children.\n\nTL;DR of this text, '))
})

test('a model that goes on is stopped after so many sentences, points or lines', async () => {
  const model = modelOf(() => ` One day. Two days. Three days.\n\nFour days. Five days. ${'More. '.repeat(50)}`)
  const summary = length => summaryOf(model, 'It rained.', { length })
  assert.equal(await summary('short').text(), 'One day.')
  assert.equal(await summary('medium').text(), 'One day. Two days. Three days.')
  const long = summary('long')
  assert.equal(await long.text(), 'One day. Two days. Three days.\n\nFour days. Five days.')
  assert.deepEqual([(await long.stats).finishReason, model.stopped], ['stop', 3])
})

test('limit: sentences and lines, as they come', () => {
  const sentence = { unit: 'sentence', units: 1 }
  const cases = [
    ['', '', false],
    [' It rained', 'It rained', false],
    ['It rained. ', 'It rained.', false],
    ['It rained. A', 'It rained.', true],
    ['Mr. Smith of the U.S. Senate lost 3.5 kg. He is', 'Mr. Smith of the U.S. Senate lost 3.5 kg.', true],
    ['雨が降った。晴れた', '雨が降った。', true]
  ]
  for (const [answer, text, isWhole] of cases) assert.deepEqual(limit(answer, sentence), { text, isWhole }, answer)
  const line = units => ({ unit: 'line', units })
  assert.deepEqual(limit('Here they are:\n\n- a\n- b\n- c', line(2)), { text: 'Here they are:\n\n- a\n- b', isWhole: true })
  assert.deepEqual(limit('A title\n\n', line(1)), { text: 'A title', isWhole: false })
})

test('a text is divided at sentences, else words, else characters, and nothing of it is lost', () => {
  const family = '👨‍👩‍👧'
  const cases = [
    ['One day. Two days. Three days.', 3, ['One day. ', 'Two days. ', 'Three days.']],
    ['A somewhat short one. And one that is longer.', 2, ['A somewhat short one. ', 'And one that is longer.']],
    ['some words and no period', 2, ['some words', ' and no period']],
    ['four', 4, ['f', 'o', 'u', 'r']],
    [family.repeat(4), 2, [family.repeat(2), family.repeat(2)]],
    [`e${'\u0301'.repeat(9)}`, 2, [`e${'\u0301'.repeat(4)}`, '\u0301'.repeat(5)]]
  ]
  for (const [text, count, parts] of cases) assert.deepEqual(divide(text, count), parts)
})

test('texts without an end of a sentence, with halves of characters, or of a megabyte', async () => {
  const share = text => Promise.resolve(text.length / 1000)
  const texts = ['word '.repeat(50_000), 'x'.repeat(30_000), '\ud83d'.repeat(5000), `${'A day. '.repeat(150_000)}`, `e${'\u0301'.repeat(9000)}`]
  for (const text of texts) {
    const passages = await split(text, share, NEVER)
    assert.equal(passages.join('').replace(/\s/g, ''), text.replace(/\s/g, ''))
    assert.ok(passages.every(({ length }) => length <= 1000))
    assert.ok(passages.length < 2.5 * text.length / 1000, `${passages.length} of ${text.length}`)
  }
  // A template that makes too much of every character ends too.
  assert.deepEqual(await split('abc', () => Promise.resolve(2), NEVER), ['a', 'b', 'c'])
})

test('a model that says nothing of any passage gives an empty summary', async () => {
  const model = modelOf(() => '')
  const summary = summaryOf(model, sentencesOf(100).join(' '))
  assert.equal(await summary.text(), '')
  assert.ok(model.asked.every(({ text }) => text !== ''))
})

test('an abort ends it, whatever it does', async () => {
  const text = sentencesOf(100).join(' ')
  for (const [after, maxBatch] of [[0, 1], [1, 1], [3, 1], [3, 4]]) {
    const controller = new AbortController()
    const model = modelOf(() => {
      if (model.asked.length >= after) controller.abort(new Error('enough'))
      return 'word '.repeat(100)
    }, { maxBatch })
    if (after === 0) controller.abort(new Error('enough'))
    const onProgress = () => assert.ok(!controller.signal.aborted)
    const summary = summaryOf(model, text, { signal: controller.signal, onProgress })
    await assert.rejects(summary.text(), /enough/)
    const { finishReason, promptTokens } = await summary.stats
    assert.equal(finishReason, 'abort')
    assert.ok(promptTokens > 0)
    assert.ok(model.asked.length <= after + 1, `${model.asked.length} prompts`)
  }
  // Leaving the loop is an abort too.
  const model = modelOf(({ wish }) => wish.includes('one') ? 'word '.repeat(100) : 'Yes.')
  const summary = summaryOf(model, text)
  for await (const said of summary) {
    assert.equal(said, 'word')
    break
  }
  assert.equal((await summary.stats).finishReason, 'abort')
})

test('options of generate reach every prompt; a model that can is told not to reason', async () => {
  const model = modelOf(() => 'Yes.', { thinking: true })
  await summaryOf(model, sentencesOf(100).join(' '), { seed: 7, maxTokens: 9 }).text()
  assert.ok(model.asked.every(({ options }) => options.seed === 7 && options.thinking === false))
  assert.equal(model.asked.at(-1).options.maxTokens, 9)
  assert.notEqual(model.asked[0].options.maxTokens, 9)

  // Only the summary itself may reason.
  const thinker = modelOf(() => 'Yes.', { thinking: true })
  await summaryOf(thinker, sentencesOf(100).join(' '), { thinking: true }).text()
  const last = thinker.asked.pop().options
  assert.deepEqual([last.thinking, last.maxTokens], [true, undefined])
  assert.ok(thinker.asked.every(({ options }) => options.thinking === false))
  const other = modelOf(() => 'Yes.')
  await summaryOf(other, 'It rained.').text()
  assert.ok(!('thinking' in other.asked[0].options))
})

test('what is wrong is refused before the model is asked', async () => {
  const model = modelOf(() => 'Yes.')
  const refused = async (text, options, code, said) => {
    const isOurs = error => error instanceof BitNetError && error.code === code && error.message.includes(said)
    await assert.rejects(summaryOf(model, text, options).text(), isOurs, said)
  }
  await refused(5, {}, 'bad-option', '`text`: must be a string')
  await refused(' \n ', {}, 'bad-option', '`text`: must not be empty')
  await refused('x', { type: 'TLDR' }, 'bad-option', `\`type\`: must be 'tldr', 'key-points', 'headline' or 'teaser'`)
  await refused('x', { length: 5 }, 'bad-option', `\`length\`: must be 'short', 'medium' or 'long'`)
  await refused('x', { format: null }, 'bad-option', `\`format\`: must be 'plain-text' or 'markdown'`)
  await refused('x', { type: 'toString' }, 'bad-option', '`type`')
  await refused('x', { context: 7 }, 'bad-option', '`context`: must be a string')
  await refused('x', { onProgress: 'x' }, 'bad-option', '`onProgress`: must be a function')
  await refused('x', { maxTokens: 0 }, 'bad-option', '`maxTokens`: must be at least 1')
  await refused('x', { maxTokens: NaN }, 'bad-option', '`maxTokens`: must be an integer')
  await refused('x', { raw: true }, 'bad-option', '`raw`: there is no such option')
  await refused('x', { special: true }, 'bad-option', '`special`: there is no such option')
  await refused('x', { context: 'word '.repeat(330) }, 'context-full', ' of 400 tokens')
  assert.equal(model.asked.length, 0)
})
