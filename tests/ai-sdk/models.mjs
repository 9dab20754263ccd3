// Models that are made by hand, for the AI SDK's own functions.
import { modelOf } from '../pkg/answerer.mjs'

export { ENDLESS, load, modelOf, STATS, stopped } from '../pkg/answerer.mjs'

/** A model that gives one answer after another: each the tokens and the options of `modelOf`. */
export const scripted = (...answers) => {
  const model = { info: { name: 'tiny', thinking: true }, asked: [] }
  model.generate = (input, options) => {
    const { signal, ...rest } = options
    const [tokens, how] = answers[model.asked.length]
    model.asked.push({ input: structuredClone(input), options: rest })
    return modelOf(tokens, how).generate(input, options)
  }
  return model
}

/** The tokens of a call. Its arguments come in two parts. */
export const calling = (name, args, index = 0) => {
  const written = JSON.stringify(args)
  const call = { index, id: `call-${index}`, name }
  const token = (text, more) => ({ text, channel: 'call', call: { index, ...more } })
  return [token('', call), token(written.slice(0, 3), {}), token(written.slice(3), { ends: true })]
}

export const reasoning = text => ({ text, channel: 'reasoning' })
