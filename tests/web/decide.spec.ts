// Decisions in a browser, in a worker and in this thread. How they are computed is in
// tests/session/decide.rs.
import { expect, failure, load, test } from './harness'

test.use({ backend: 'cpu' })

/** A model whose values are rounded nowhere but in f32, with a template that adds only an end. */
const MODEL = '/tests/data/models/qwen3-q2_0.gguf'
const OPTIONS = { template: '{{ messages[0].content }}<|im_end|>', kv: 'f32', activations: 'f32' } as const

const TEXT = 'It rained.'
const LABELS = ['a', 'ab']

test('a decision is that of the logits, and the text is computed once', async ({ shared: page }) => {
  await load(page, OPTIONS, MODEL)
  const { decision, expected, several, names } = await page.evaluate(async ([text, labels]) => {
    const { model } = window
    const question = 'Which?'
    const decision = await model.decide(text, { question, options: labels })
    const message = `Text:\n${text}\n\nQuestion: ${question}\nAnswer with one of these options and nothing else:` +
      labels.map(label => `\n- ${label}`).join('')
    const [end] = await model.tokenize('<|im_end|>', { special: true })
    const prompt = [...await model.tokenize(message), end!]
    const logprob = async (ids: number[], id: number) => {
      const logits = await model.logits(Uint32Array.from(ids))
      return logits[id]! - Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0))
    }
    const expected: number[] = []
    for (const label of labels) {
      let sum = 0
      const ids = [...prompt]
      for (const id of [...await model.tokenize(label), end!]) {
        sum += await logprob(ids, id)
        ids.push(id)
      }
      expected.push(sum)
    }
    const several = await model.decide(text, {
      questions: [
        { question: 'How?', type: 'score', options: [{ label: '2', description: 'wet' }, '1'] },
        { question, options: ['__proto__', 'y'] }
      ]
    })
    // Messages of Playwright lose a field with this name.
    const names = several.decisions.map(({ probabilities }) => Object.keys(probabilities))
    return { decision, expected, several, names }
  }, [TEXT, LABELS] as const)

  expect(Object.keys(decision.probabilities)).toEqual(LABELS)
  const shares = expected.map(sum => Math.exp(sum))
  const sum = shares.reduce((a, b) => a + b)
  for (const [n, label] of LABELS.entries()) {
    expect(Math.abs(decision.logprobs[label]! - expected[n]!)).toBeLessThan(1e-3)
    expect(Math.abs(decision.probabilities[label]! - shares[n]! / sum)).toBeLessThan(1e-3)
  }
  const best = LABELS[expected.indexOf(Math.max(...expected))]!
  expect(decision).toMatchObject({ label: best, confidence: decision.probabilities[best] })
  expect(decision).not.toHaveProperty('expectedScore')
  expect(decision.stats.reusedTokens).toBe(0)
  expect(decision.stats.passes).toBeLessThan(decision.stats.optionTokens)

  expect(several.stats.reusedTokens).toBeGreaterThan(5)
  // The order of names that are numbers is JavaScript's.
  expect(names).toEqual([['1', '2'], ['__proto__', 'y']])
  const { probabilities, expectedScore } = several.decisions[0]!
  const [one, two] = [probabilities['1']!, probabilities['2']!]
  expect(one + two).toBeCloseTo(1, 9)
  expect(expectedScore).toBeCloseTo(one + 2 * two, 9)
})

for (const worker of [true, false]) {
  test(`a decision compares as asked, and ends early, ${worker ? 'in a worker' : 'in this thread'}`, async ({ shared: page }) => {
    await load(page, { ...OPTIONS, ...(worker ? {} : { worker }) }, MODEL)
    const { plain, prior, why, late, next } = await page.evaluate(async text => {
      const { model } = window
      const question = 'Is it?'
      const plain = await model.decide(text, { question })
      const prior = await model.decide(text, { question, normalize: 'prior', temperature: 2 })
      const stop = new AbortController()
      const running = model.decide(text.repeat(8), { question, signal: stop.signal })
      setTimeout(() => stop.abort(new Error('enough')))
      const why = await running.then(() => 'none', (error: Error) => error.message)
      const late = await model.decide(text, { question, signal: stop.signal }).catch((error: Error) => error.message)
      return { plain, prior, why, late, next: await model.decide(text, { question }) }
    }, TEXT)
    expect(plain.confidence).toBe(plain.probabilities[plain.label])
    expect(prior.stats.promptTokens).toBeGreaterThan(plain.stats.promptTokens)
    expect(prior.logprobs['yes']).toBeCloseTo(plain.logprobs['yes']!, 2)
    expect(prior.confidence).not.toBe(plain.confidence)
    expect([why, late]).toEqual(['enough', 'enough'])
    expect(next.label).toBe(plain.label)
    expect(await failure(page, `await window.model.decide('x', { question: () => {} })`)).toMatchObject({ code: 'bad-option' })
  })
}

/** Options that are refused, the name that the error gives, and what it says. */
const REFUSED: [options: string, name: string, message: string][] = [
  ['null', 'options', 'must be an object'],
  ['{}', 'question', 'is missing'],
  ['{ question: 5 }', 'question', 'must be a string'],
  [`{ question: ' ' }`, 'question', 'must not be empty'],
  [`{ question: 'Is it?', questions: [] }`, 'question', 'must be absent beside `questions`'],
  [`{ question: 'Is it?', typ: 'choice' }`, 'typ', 'there is no such option'],
  [`{ question: 'Is it?', type: 'poem' }`, 'type', `must be 'boolean', 'choice' or 'score'`],
  [`{ question: 'Is it?', type: 'boolean', options: ['a', 'b'] }`, 'options', 'must be absent: those of a boolean are yes and no'],
  [`{ question: 'Which?', type: 'choice' }`, 'options', 'must be two or more'],
  [`{ question: 'Which?', options: 'ab' }`, 'options', 'must be an array'],
  [`{ question: 'Which?', options: ['a', 5] }`, 'options[1]', 'must be a string or an object'],
  [`{ question: 'Which?', options: ['a', { name: 'b' }] }`, 'options[1].label', 'is missing'],
  [`{ question: 'Which?', options: ['a', { label: 'b', text: 'c' }] }`, 'options[1].text', 'there is no such option'],
  [`{ question: 'Which?', options: ['a', ''] }`, 'options[1]', 'must have a label'],
  [`{ question: 'Which?', options: ['a', 'b', { label: 'a' }] }`, 'options[2]', 'must not have the label of another'],
  [`{ question: 'How?', type: 'score', options: ['1', 'good'] }`, 'options[1]', 'must have a number as its label, as it is an option of a score'],
  [`{ questions: {} }`, 'questions', 'must be an array'],
  [`{ questions: [] }`, 'questions', 'must not be empty'],
  [`{ questions: [{ question: 'Is it?' }, 'Is it?'] }`, 'questions[1]', 'must be an object'],
  [`{ questions: [{ question: 'Is it?' }, { question: 'Which?', options: ['a'] }] }`, 'questions[1].options', 'must be two or more'],
  [`{ questions: [{ question: 'Is it?', context: 'x' }] }`, 'questions[0].context', 'there is no such option'],
  [`{ questions: [{ question: 'Is it?' }], options: ['a', 'b'] }`, 'options', 'there is no such option'],
  [`{ question: 'Is it?', normalize: 'all' }`, 'normalize', `must be 'none', 'length' or 'prior'`],
  [`{ question: 'Is it?', temperature: 0 }`, 'temperature', 'must be a number above 0'],
  [`{ question: 'Is it?', context: 5 }`, 'context', 'must be a string'],
  [`{ question: 'Is it?', signal: 5 }`, 'signal', 'must be an AbortSignal']
]

test('what cannot be decided is refused in JavaScript\'s terms', async ({ shared: page }) => {
  await load(page, OPTIONS, MODEL)
  for (const [options, name, message] of REFUSED) {
    const found = await failure(page, `await model.decide('x', ${options})`)
    expect(found, options).toEqual({ code: 'bad-option', message: `bad option \`${name}\`: ${message}` })
  }
  for (const [text, message] of [['5', 'must be a string'], ['" "', 'must not be empty']]) {
    const found = await failure(page, `await model.decide(${text}, { question: 'Is it?' })`)
    expect(found).toEqual({ code: 'bad-option', message: `bad option \`text\`: ${message}` })
  }
  const long = await failure(page, `await model.decide('wet '.repeat(300), { question: 'Is it?' })`)
  expect(long.code).toBe('context-full')
})
