// A model that is made by hand and echoes its conversation, for tests of `tritloom/built-in-ai` without a browser. Its
// tokens are words. It refuses what a real one refuses, and formats are held by the real grammars.
import { allowed, made, STOP, TRUE } from './grammars.mjs'

const load = name => import(new URL(`../../pkg/${name}.js`, import.meta.url))
const { Generation } = await load('generation')
const { BitNetError } = await load('error')
const { portableOptions } = await load('page/format')
const { summarize } = await load('page/summarize')
const { runTools } = await load('page/tools')

/** Tokens that a template puts around a message. */
const FRAME = 2
const bad = (name, why) => new BitNetError('bad-option', `bad option \`${name}\`: ${why}`)
const wordsOf = text => text.match(/\s*\S+|\s+$/g) ?? []
const formats = await made()

/** The tokens that are taken before others, where a grammar allows several. */
const FIRST = ['"', ']', '}', '5', '0', 'a', 'b', 'n', 't', '*', 'h', 'g', ' ', '-', ',', '.', '@', ':', '/'].map(char => char.charCodeAt(0))
const textOf = ids => ids.map(id => id === TRUE ? 'true' : String.fromCharCode(id)).join('')

/** An answer of the tokens that a grammar allows, after the text with which it begins. It ends where it may. */
const held = (grammar, begun) => {
  for (let text = ''; ;) {
    const matcher = grammar.matcher(begun + text)
    const next = matcher.follow()
    matcher.free()
    if (next === undefined) return text
    const ids = next instanceof Uint32Array ? allowed(next) : next
    if (ids.includes(STOP)) return text
    if (text.length > 200) throw new Error(`no end: ${text}`)
    const found = FIRST.filter(id => ids.includes(id))
    // Another one each time, so that no text goes on for ever.
    const one = found[(Math.imul(text.length, 0x9e3779b1) >>> 16) % found.length] ?? ids.find(id => id > 32)
    text += textOf(next instanceof Uint32Array ? [one] : [...ids])
  }
}

/**
 * The model. `says(messages)` is its answer, by default all texts of the conversation. A text with `CALL name` makes it
 * call that tool, with the arguments of `args[name]`. `asked` has the messages and options of each answer, `most` the
 * greatest number of answers that ran at a time.
 */
export const echo = ({ contextLength = 200, thinking = false, says = echoed, args = {}, fails } = {}) => {
  const model = { info: { contextLength, thinking, maxBatch: 4 }, asked: [], warmed: [], running: 0, most: 0, disposed: 0 }
  model.countTokens = async (messages, { tools = [] } = {}) => {
    checkMessages(messages)
    checkTools(tools)
    const tokens = messages.map(({ content, toolCalls = [] }) => FRAME + wordsOf(content).length + toolCalls.length)
    return tokens.reduce((sum, count) => sum + count, tools.length)
  }
  model.generate = (input, { signal, ...options }) => new Generation(async (onToken, stop) => {
    model.most = Math.max(model.most, ++model.running)
    try {
      return await answer(input, options, onToken, stop)
    } finally {
      model.running -= 1
    }
  }, signal)
  const answer = async (input, options, onToken, stop) => {
    const messages = typeof input === 'string' ? [{ role: 'user', content: input }] : input
    const { responseFormat, tools, maxTokens = Infinity } = options
    model.asked.push({ messages, options })
    const promptTokens = await model.countTokens(messages)
    if (promptTokens >= contextLength) throw new BitNetError('context-full', `${promptTokens} of ${contextLength} tokens`)
    const begun = messages.at(-1).prefix ? messages.at(-1).content : ''
    if (messages.at(-1).prefix && (begun === '' || tools)) throw bad('prefix', 'cannot be')
    if (tools && responseFormat) throw bad('tools', 'not together with `responseFormat`')
    if (tools) checkTools(tools)
    const text = responseFormat ? inFormat(responseFormat, begun) : says(messages)
    const room = Math.min(maxTokens, contextLength - promptTokens)
    const stats = { promptTokens, reusedTokens: 0, completionTokens: 0, batch: 1, prefillTokensPerSecond: 1, decodeTokensPerSecond: 1 }
    for (const word of wordsOf(text)) {
      await new Promise(setImmediate)
      if (stop.aborted) return { ...stats, finishReason: 'abort' }
      if (fails && stats.completionTokens === 1) throw fails
      if (stats.completionTokens === room) return { ...stats, finishReason: 'length' }
      stats.completionTokens += 1
      onToken({ id: 1, text: word, channel: 'answer' })
    }
    const last = messages.at(-1)
    const calls = tools && last.role === 'user' ? [...last.content.matchAll(/CALL ([\w-]+)/g)].map(([, name]) => name) : []
    calls.forEach((name, index) => {
      const call = { index, id: `call-${messages.length}-${index}`, name }
      onToken({ id: 2, text: JSON.stringify(args[name] ?? {}), channel: 'call', call })
      onToken({ id: 2, text: '', channel: 'call', call: { index, ends: true } })
    })
    return { ...stats, finishReason: calls.length > 0 ? 'tool-calls' : 'stop' }
  }
  model.prewarm = async messages => {
    await model.countTokens(messages)
    model.warmed.push(messages)
  }
  model.runTools = options => runTools(model, options)
  model.summarize = (text, { signal, ...options }) =>
    new Generation((onToken, stop) => summarize(model, text, options, onToken, stop), signal)
  model.decide = async (text, { context, questions, signal }) => {
    signal?.throwIfAborted()
    model.asked.push({ text, context, questions })
    const decisions = questions.map(({ type, options = [] }) => {
      const labels = type === 'boolean' ? ['yes', 'no'] : options.length > 0 ? options.map(({ label }) => label) : ['1', '2', '3', '4', '5']
      const share = 1 / labels.length
      const probabilities = Object.fromEntries(labels.map(label => [label, share]))
      return { label: labels[0], confidence: share, probabilities, logprobs: {}, ...(type === 'score' && { expectedScore: 3 }) }
    })
    return { decisions, stats: {} }
  }
  // A test may end it, as if its thread had failed: with an error for all calls.
  model.ended = new Promise(resolve => {
    model.ends = error => {
      for (const name of ['countTokens', 'prewarm', 'decide']) model[name] = async () => { throw error }
      model.generate = () => new Generation(async () => { throw error })
      resolve(error)
    }
  })
  model.dispose = async () => { model.disposed += 1 }
  return model
}

const echoed = messages => messages.map(({ content, toolCalls, prefix }) =>
  prefix ? '' : [content, ...(toolCalls ?? []).map(call => `<call>${JSON.stringify(call)}</call>`)].join(' ')).join('\n')

const inFormat = (responseFormat, begun) => {
  const format = portableOptions({ responseFormat }).responseFormat
  try {
    return held(formats.hold(format).grammar, begun)
  } catch (error) {
    throw bad('responseFormat', error.message)
  }
}

const checkMessages = messages => {
  const last = messages.at(messages.at(-1)?.prefix ? -2 : -1)
  if (!last) throw bad('messages', 'must not be empty')
  if (last.role !== 'tool' && last.content.trim() === '') throw bad('prompt', 'there is nothing to answer')
  let open = []
  for (const { role, toolCalls = [], toolCallId } of messages) {
    if (role !== 'tool') {
      open = toolCalls.map(({ id }) => id)
      continue
    }
    if (!open.includes(toolCallId)) throw bad('messages', `no call before it has the id ${toolCallId}`)
    open.splice(open.indexOf(toolCallId), 1)
  }
}

const checkTools = tools => {
  for (const { name } of tools) {
    if (!/^[\w.:/-]{1,128}$/.test(name)) throw bad('tools', `has a wrong name`)
  }
}
