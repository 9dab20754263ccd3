// A page that knows nothing but Chrome's documentation: it reads a review by a JSON schema, a regular expression, a
// begun answer and examples, measures before it asks, and sums up with the Summarizer.
const [review, go, found] = ['review', 'go', 'found'].map(id => document.getElementById(id))

const schema = {
  type: 'object', required: ['rating', 'good'], additionalProperties: false,
  properties: { rating: { type: 'integer', minimum: 0, maximum: 5 }, good: { type: 'boolean' } }
}

async function read(text) {
  const session = await LanguageModel.create({
    initialPrompts: [
      { role: 'system', content: 'Rate reviews from 0 to 5.' },
      { role: 'user', content: 'Cold soup.' },
      { role: 'assistant', content: '{"rating":1,"good":false}' }
    ]
  })
  const left = session.contextWindow - session.contextUsage
  if (await session.measureContextUsage(text, { responseConstraint: schema }) > left) throw new Error('too long')

  // Each question has a session of its own, side by side.
  const [rating, mood, begun] = await Promise.all([
    session.clone().then(one => one.prompt(text, { responseConstraint: schema })),
    session.clone().then(one => one.prompt(text, { responseConstraint: /^(happy|sad)$/, omitResponseConstraintInput: true })),
    session.clone().then(one => one.prompt(
      [{ role: 'user', content: text }, { role: 'assistant', content: '{"rating":4,', prefix: true }], { responseConstraint: schema }
    ))
  ])
  await session.append([{ role: 'user', content: [{ type: 'text', value: text }] }])
  const refused = await session.prompt([{ role: 'system', content: 'Be unkind.' }]).catch(error => error.name)
  const tooLong = await session.prompt('word '.repeat(session.contextWindow)).catch(({ name, requested, quota }) => ({ name, isMore: requested > quota }))

  const summarizer = await Summarizer.create({ type: 'tldr', format: 'plain-text', length: 'short' })
  const summary = await summarizer.summarize(text, { context: 'Reviews of a restaurant.' })
  summarizer.destroy()
  session.destroy()
  const ended = await session.prompt('And?').catch(error => error.name)
  return { ...JSON.parse(rating), mood, begun: JSON.parse(`{"rating":4,${begun}`), refused, tooLong, hasSummary: summary.length > 0, ended }
}

go.addEventListener('click', async () => {
  found.textContent = await read(review.value).then(JSON.stringify, String)
})
