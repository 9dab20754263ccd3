// A model that is made by hand, for tests of OpenAI's interface without a browser.
import assert from 'node:assert/strict'

/** A module of the package. */
export const load = name => import(new URL(`../../pkg/${name}.js`, import.meta.url))
const { RequestError } = await load('openai/checks')
const { Generation } = await load('generation')

/** Checks for a refusal with this code of OpenAI's, that names this parameter. */
export const refuses = (work, kind, param, said = /./) =>
  assert.throws(work, error => {
    assert.ok(error instanceof RequestError, String(error))
    assert.deepEqual([error.kind, error.param, error.status], [kind, param, 400], error.message)
    assert.match(error.message, said)
    if (param) assert.ok(error.message.includes(`'${param}'`), error.message)
    return true
  })

export const STATS = { promptTokens: 5, reusedTokens: 2, completionTokens: 3, reasoningTokens: 1 }

/**
 * A model that says `texts`, then ends; `fails` is what it throws instead of its end. `asked` has
 * what it was asked, and `stopped` how many of its answers were.
 */
export const modelOf = (texts, { finishReason = 'stop', fails, thinking = true } = {}) => {
  const model = { info: { name: 'tiny', thinking }, asked: [], stopped: 0 }
  model.generate = (input, { signal, ...options }) => {
    model.asked.push({ input, options })
    return new Generation(async (onToken, stop) => {
      for (const text of texts) {
        await new Promise(setImmediate)
        if (stop.aborted) {
          model.stopped += 1
          return { ...STATS, finishReason: 'abort' }
        }
        onToken(typeof text === 'string' ? { text, channel: 'answer' } : text)
      }
      if (fails) throw fails
      return { ...STATS, finishReason }
    }, signal)
  }
  return model
}

export const ENDLESS = Array(1000).fill('x')

export const post = (body, signal) => ({
  method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), signal
})

/** Resolves once an answer of the model was stopped. */
export const stopped = model => new Promise(resolve => {
  const look = () => model.stopped === 1 ? resolve() : setImmediate(look)
  look()
})
