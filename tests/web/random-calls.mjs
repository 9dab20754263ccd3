// Random calls of the whole package, drawn by a seed. Each has to end within a bound: with the right
// answer, or with an error of the package that has one of its codes. It runs in a page of the tests.

/** Numbers from 0 to 1 that the seed decides (mulberry32). */
const drawFrom = seed => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

/** A mistake of the package. */
class Wrong extends Error {}

const DAY = 'Mia wanted to go to the beach, but it was raining. Her brother Ben built a big fort with pillows. '

/** Texts that the model does not know by heart. */
const TEXTS = [
  'a', 'The end', 'Why is the sky blue?', 'the moon '.repeat(9), '東京 → 🦊', 'a\u0301\u0301\u0301', '\ud83d', 'x\udc00y',
  '<|eot_id|>', '<|begin_of_text|>User: <|eot_id|>', '\0', '{{ messages }}', 'ä'.repeat(40)
]

/** Values that are wrong for most arguments. */
const VALUES = [
  null, undefined, true, false, NaN, -1, 0.5, 2 ** 32, Infinity, 5n, '', '\n\n', 'x', '\ud800', [], [null], ['x'], {},
  [{ name: 'f' }], [{ name: 'f', parameters: { type: 'object' } }, { name: '' }], { name: 'f' }, { role: 'robot' }, [{ role: 'robot', content: 'x' }], [{ role: 'user', content: 7 }], new Map(), new Date(0),
  new Uint8Array(4), Uint32Array.of(606), Object(5), Symbol('x'), () => {}, 'x'.repeat(5000), ['y'.repeat(1000)],
  Array.from({ length: 1000 }, (_, n) => `never ${n}`)
]

const OPTIONS = [
  'maxTokens', 'temperature', 'topK', 'topP', 'minP', 'repeatPenalty', 'presencePenalty', 'frequencyPenalty', 'seed',
  'stop', 'promptLookup', 'thinking', 'maxThinkingTokens', 'logprobs', 'logitBias', 'raw', 'special', 'signal', 'responseFormat',
  'tools', 'toolChoice', 'parallelToolCalls', 'no such option'
]
const LOAD_OPTIONS = [
  'context', 'cache', 'integrity', 'crossOriginStorage', 'stallTimeout', 'worker', 'kv', 'lmHead', 'activations', 'i2sLayout', 'tokenizer', 'template', 'adapters', 'strict', 'deterministic',
  'gpu', 'backend', 'threads', 'signal', 'onProgress', 'no such option'
]
const REQUEST = [
  'model', 'messages', 'max_completion_tokens', 'temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'seed',
  'stop', 'n', 'stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'logprobs', 'reasoning_effort', 'no such field'
]
const RESPONSE_REQUEST = [
  'input', 'instructions', 'max_output_tokens', 'temperature', 'text', 'reasoning', 'include', 'top_logprobs', 'metadata', 'stream',
  'store', 'tools', 'tool_choice', 'parallel_tool_calls', 'previous_response_id', 'no such field'
]

const wait = ms => new Promise(resolve => setTimeout(resolve, ms))

export class RandomCalls {
  /** How many calls there were of each kind, and how they ended. */
  counts = {}
  #BitNet
  #BitNetError
  #codes
  #url
  #goldens
  #draw
  #bound
  /** The tokens that each prompt with its options has had so far, and the answer's text. */
  #known = new Map()
  /** The logits that each prompt has had. */
  #logits = new Map()
  #model
  #backend
  #chats = []
  /** The end of the last load of another model. Each takes memory that depends on how many run at once. */
  #loaded = Promise.resolve()
  /** Whether the model is going away, so that calls may fail with `disposed`. */
  #isLeaving = false

  /**
   * `goldens` are texts of the model at `url`, `codes` all codes of errors. A call that takes longer
   * than `bound` milliseconds hangs.
   */
  constructor({ seed, url, goldens, codes, bound }) {
    const { BitNet, BitNetError } = globalThis.tritloom
    this.#BitNet = BitNet
    this.#BitNetError = BitNetError
    this.#draw = drawFrom(seed)
    this.#url = url
    // An answer that the model has given keeps its tokens, which are not always those of its text: a
    // conversation with one may have two continuations.
    const hasAnswer = ({ turns }) => turns?.some(([role]) => role === 'assistant')
    this.#goldens = goldens.filter(golden => golden.ids.length < 100 && !hasAnswer(golden))
    this.#codes = codes
    this.#bound = bound
  }

  /**
   * Makes one call of each kind on the GPU in the kept worker, then on the CPU in this thread, and disposes of the model.
   * Resolves to what went wrong, or to undefined.
   */
  begin() {
    return this.#caught(async () => {
      for (const [worker, backend] of [[globalThis.worker, 'webgpu'], [false, 'cpu']]) {
        await this.#load(worker, backend)
        for (const kind of Object.keys(this.#kinds)) await this.#call(kind)
        await this.#leave([])
      }
    })
  }

  /**
   * Makes calls for so many milliseconds, several at a time, and disposes of the model at the end.
   * Resolves as `begin` does.
   */
  run(ms) {
    return this.#caught(async () => {
      const end = performance.now() + ms
      await this.#load()
      while (performance.now() < end) {
        const calls = Array.from({ length: 1 + this.#below(4) }, () => this.#call(this.#kind()))
        if (this.#below(20) === 0) await this.#leave(calls)
        await Promise.all(calls)
      }
      await this.#leave([])
      // Or else the heap would grow by what the test keeps.
      this.#known.clear()
      this.#logits.clear()
    })
  }

  async #caught(work) {
    try {
      await work()
    } catch (error) {
      return `${error.message}\n${error.stack}`
    }
  }

  #below(count) {
    return Math.floor(this.#draw() * count)
  }

  #pick(values) {
    return values[this.#below(values.length)]
  }

  #chance(share) {
    return this.#draw() < share
  }

  /** In the page's kept worker, in a worker of its own, or in this thread; on the GPU, or on the CPU. */
  async #load(
    worker = this.#pick([globalThis.worker, globalThis.worker, false, false, true]), backend = this.#pick(['webgpu', 'cpu'])
  ) {
    this.#isLeaving = false
    this.#backend = backend
    const threads = this.#pick([undefined, 1, 3])
    this.#model = await this.#within('load', this.#BitNet.load(this.#url, { worker, backend, threads, context: 256 }))
    await this.#within('stored', this.#model.stored)
  }

  /** Disposes of the model while `calls` run, and loads it again if there were some. */
  async #leave(calls) {
    await wait(this.#below(100))
    this.#isLeaving = true
    this.#chats = []
    await this.#within('dispose', this.#model.dispose())
    await Promise.all(calls)
    if (calls.length > 0) await this.#load()
  }

  /** Rejects if the work takes too long. */
  async #within(name, work) {
    let timer
    const hangs = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Wrong(`${name} has not ended after ${this.#bound} ms`)), this.#bound)
    })
    try {
      return await Promise.race([work, hangs])
    } finally {
      clearTimeout(timer)
    }
  }

  async #call(name) {
    const { run, fails = [] } = this.#kinds[name]
    let outcome = 'right'
    try {
      await this.#within(name, run(this.#model))
    } catch (error) {
      if (!(error instanceof this.#BitNetError)) throw new Wrong(`${name}: ${error?.stack ?? error}`)
      outcome = error.code
      const isExpected = fails === 'any' ? outcome !== 'internal' : fails.includes(outcome)
      const isLeaving = this.#isLeaving && outcome === 'disposed'
      if (!this.#codes.includes(outcome) || !(isExpected || isLeaving)) throw new Wrong(`${name}: ${outcome}: ${error.message}`)
    }
    const key = `${name}: ${outcome}`
    this.counts[key] = (this.counts[key] ?? 0) + 1
  }

  #kind() {
    const kinds = Object.entries(this.#kinds)
    let left = this.#below(kinds.reduce((sum, [, { weight }]) => sum + weight, 0))
    return kinds.find(([, { weight }]) => (left -= weight) < 0)[0]
  }

  /** An input with a name of its own, and the text that its greedy answer is known to have. */
  #input() {
    if (this.#chance(0.5)) {
      const { name, kind, turns, text, ids, greedy_text: answer } = this.#pick(this.#goldens)
      if (kind === 'chat') return { name, input: turns.map(([role, content]) => ({ role, content })), options: {}, answer }
      // A text and its tokens have the same answer.
      if (this.#chance(0.5)) return { name, input: Uint32Array.from(ids), options: {}, answer }
      return { name, input: text, options: { raw: true, special: true }, answer }
    }
    const text = this.#pick(TEXTS)
    const raw = this.#chance(0.3)
    return { name: JSON.stringify([text, raw]), input: text, options: raw ? { raw } : {} }
  }

  /** Options that change the tokens, and `maxTokens`. Those of one seed give one text. */
  #drawing() {
    const drawing = this.#chance(0.6) ? {} : this.#pick([
      { temperature: 0.8, seed: 1 },
      { temperature: 1.5, topK: 5, topP: 0.9, minP: 0.01, seed: 2 },
      { repeatPenalty: 1.2 },
      { presencePenalty: 0.5, frequencyPenalty: 0.5, temperature: 1, seed: 3 },
      { logitBias: { 300: -100, 13: 5 }, temperature: 0.5, seed: 4 },
      { promptLookup: false }
    ])
    return { drawing, maxTokens: 1 + this.#below(24) }
  }

  /** Compares the tokens of an answer with those that the same prompt has had before, on the same back end. */
  #compare(called, ids) {
    const name = `${this.#backend}: ${called}`
    const known = this.#known.get(name) ?? []
    const length = Math.min(known.length, ids.length)
    const differs = ids.slice(0, length).findIndex((id, n) => id !== known[n])
    if (differs >= 0) throw new Wrong(`${name}: token ${differs} was ${known[differs]} and is ${ids[differs]}`)
    if (ids.length > known.length) this.#known.set(name, ids)
  }

  /** Reads an answer in one of the ways that there are: its text, and its tokens if these were read. */
  async #read(generation) {
    let text = ''
    switch (this.#below(4)) {
      case 0:
        return { text: await generation.text() }
      case 1:
        for await (const part of generation) text += part
        return { text }
      case 2:
        for (const reader = generation.stream().getReader(); ;) {
          const { done, value } = await reader.read()
          if (done) return { text }
          text += value
        }
      default: {
        const ids = []
        for await (const token of generation.tokens()) {
          if (token.id !== undefined) ids.push(token.id)
          text += token.text
        }
        return { text, ids }
      }
    }
  }

  async #check({ name, answer }, drawing, generation) {
    const { text: read, ids } = await this.#read(generation)
    // `maxTokens` may end an answer within a character.
    const text = read.replace(/\ufffd$/, '')
    const isGreedy = !drawing.temperature && !drawing.repeatPenalty
    if (isGreedy && answer !== undefined && !answer.startsWith(text)) throw new Wrong(`${name}: ${JSON.stringify(text)}`)
    const { promptLookup: _, ...changing } = drawing
    if (ids) this.#compare(`${name} ${JSON.stringify(changing)}`, ids)
    const { finishReason } = await generation.stats
    if (finishReason === 'abort') throw new Wrong(`${name}: it was stopped`)
  }

  /** `weight`: how often each is drawn. `fails`: the codes that its errors may have. */
  #kinds = {
    'an answer': {
      weight: 30,
      run: async model => {
        const asked = this.#input()
        const { drawing, maxTokens } = this.#drawing()
        const telling = this.#chance(0.2) ? { logprobs: this.#below(21) } : {}
        const generation = model.generate(asked.input, { ...asked.options, ...drawing, ...telling, maxTokens })
        await this.#check(asked, drawing, generation)
        if (telling.logprobs === undefined) return
        for await (const { id, logprob, top } of generation.tokens()) {
          const isTold = logprob <= 0 && top.length === telling.logprobs && top.every(one => one.logprob <= 0)
          if (id !== undefined && !isTold) throw new Wrong(`${asked.name}: ${id} has ${logprob} and ${JSON.stringify(top)}`)
        }
      }
    },
    'an answer in a format': {
      weight: 6,
      run: async model => {
        const [responseFormat, begun, fits] = this.#pick([
          [/[a-c]{2,9}!/, 'ca', text => /^[a-c]{2,9}!$/.test(text)],
          [{ type: 'json_schema', schema: { enum: ['yes', 'no', null] } }, '"n', text => ['"yes"', '"no"', 'null'].includes(text)],
          [{ type: 'json_schema', schema: { type: 'array', items: { type: 'boolean' }, maxItems: 3 } }, '[true,f', text => JSON.parse(text).length <= 3]
        ])
        const isBegun = this.#chance(0.3)
        const messages = [{ role: 'user', content: this.#pick(TEXTS) }, { role: 'assistant', content: begun, prefix: true }]
        const { input, options } = isBegun ? { input: messages, options: {} } : this.#input()
        const sampling = this.#chance(0.5) ? {} : { temperature: 1, seed: this.#below(9) }
        const { text: rest } = await this.#read(model.generate(input, { ...options, ...sampling, responseFormat }))
        const text = isBegun ? begun + rest : rest
        if (!fits(text)) throw new Wrong(`${JSON.stringify(text)} in a format`)
      }
    },
    'an answer that is left or aborted': {
      weight: 12,
      run: async model => {
        const { input, options } = this.#input()
        const reason = new Error('enough')
        const abort = new AbortController()
        if (this.#chance(0.1)) abort.abort(reason)
        const generation = model.generate(input, { ...options, signal: abort.signal, stop: [], maxTokens: 60 })
        const after = this.#below(8)
        const leaves = this.#chance(0.5)
        let read = 0
        try {
          for await (const _ of generation.tokens()) {
            if (++read < after) continue
            if (leaves) break
            abort.abort(reason)
          }
        } catch (error) {
          if (error !== reason) throw error
        }
        await generation.stats
      }
    },
    'answers as a batch': {
      weight: 8,
      run: async model => {
        const { drawing, maxTokens } = this.#drawing()
        const asked = Array.from({ length: 1 + this.#below(9) }, () => this.#input()).filter(({ options }) => !options.raw)
        const generations = model.generateMany(asked.map(({ input }) => input), { ...drawing, maxTokens })
        await Promise.all(generations.map((generation, n) => this.#check(asked[n], drawing, generation)))
      }
    },
    'a turn of a chat': {
      weight: 10,
      fails: ['context-full'],
      run: async model => {
        if (this.#chats.length < 3) this.#chats.push(model.createChat({ overflow: this.#pick(['error', 'slide']) }))
        const chat = this.#pick(this.#chats)
        if (this.#chance(0.1)) chat.reset()
        if (this.#chance(0.1)) this.#chats[this.#below(this.#chats.length)] = chat.fork()
        const maxTokens = 1 + this.#below(20)
        const { length } = chat.messages
        const send = () => chat.send(this.#pick(TEXTS), { maxTokens, prefix: this.#pick([undefined, undefined, 'So', 'ä ']) })
        const change = this.#pick([
          () => chat.regenerate({ maxTokens }), () => chat.continue({ maxTokens }),
          () => chat.edit(this.#below(length), this.#pick(TEXTS), { maxTokens })
        ])
        try {
          const turn = (length > 0 && this.#chance(0.5) ? change : send)()
          if (turn) await this.#read(turn)
        } catch (error) {
          // Another call has changed the chat, or its answer has failed.
          if (!/`(regenerate|continue|index)`/.test(error.message)) throw error
        }
        if (chat.messages.some(({ content }) => typeof content !== 'string')) throw new Wrong('a message without a text')
      }
    },
    'a chat that is saved': {
      weight: 3,
      run: async model => {
        const chat = model.createChat()
        await this.#read(chat.send(this.#pick(TEXTS), { maxTokens: 1 + this.#below(8) }))
        const saved = await chat.save()
        const restored = await model.restoreChat(saved)
        if (JSON.stringify(restored.messages) !== JSON.stringify(chat.messages)) throw new Wrong(JSON.stringify(restored.messages))
        const [text, forked] = await Promise.all([restored, chat.fork()].map(one => one.send('Why?', { maxTokens: 4 }).text()))
        if (text !== forked) throw new Wrong(`${JSON.stringify(text)} is not ${JSON.stringify(forked)}`)
        const bytes = new Uint8Array(await saved.arrayBuffer())
        bytes[this.#below(bytes.length)] ^= 1 + this.#below(255)
        const code = await model.restoreChat(new Blob([bytes])).then(() => 'none', error => error.code)
        if (code !== 'bad-option' && !(this.#isLeaving && code === 'disposed')) throw new Wrong(`a damaged chat: ${code}`)
      }
    },
    'a first turn': {
      weight: 4,
      run: async model => {
        const { greedy_text: answer } = this.#goldens.find(({ name }) => name === 'who')
        const text = await model.createChat().send('Who are you?', { maxTokens: 9 }).text()
        if (text === '' || !answer.startsWith(text)) throw new Wrong(JSON.stringify(text))
      }
    },
    'a summary': {
      weight: 4,
      run: async model => {
        const times = 1 + this.#below(8)
        const type = this.#pick(['tldr', 'key-points', 'headline', 'teaser'])
        const fractions = []
        const summary = model.summarize(DAY.repeat(times), { type, maxTokens: 8, onProgress: ({ fraction }) => fractions.push(fraction) })
        const ids = []
        for await (const { id } of summary.tokens()) if (id !== undefined) ids.push(id)
        this.#compare(`summary ${times} ${type}`, ids)
        if (fractions.at(-1) !== 1) throw new Wrong(`summary: ${fractions}`)
      }
    },
    'a decision': {
      weight: 4,
      fails: ['context-full'],
      run: async model => {
        const options = this.#pick([['a', 'ab'], ['yes', 'no', 'The end', 'The'], TEXTS.slice(0, 4)])
        const normalize = this.#pick(['none', 'none', 'length', 'prior'])
        const reason = new Error('enough')
        const abort = new AbortController()
        if (this.#chance(0.2)) setTimeout(() => abort.abort(reason), this.#below(100))
        try {
          const questions = [{ question: 'Is it?' }, { question: 'Which?', options }].slice(this.#below(2))
          const { decisions } = await model.decide(this.#pick(TEXTS), { questions, normalize, signal: abort.signal })
          for (const { label, confidence, probabilities } of decisions) {
            const sum = Object.values(probabilities).reduce((a, b) => a + b)
            const isBest = probabilities[label] === confidence && confidence === Math.max(...Object.values(probabilities))
            if (!isBest || !(Math.abs(sum - 1) < 1e-9)) throw new Wrong(`decision: ${JSON.stringify(probabilities)}`)
          }
        } catch (error) {
          if (error !== reason) throw error
        }
      }
    },
    'a chat completion': {
      weight: 6,
      run: async model => {
        const { greedy_text: answer } = this.#goldens.find(({ name }) => name === 'who')
        const messages = [{ role: 'user', content: 'Who are you?' }]
        const body = { messages, temperature: 0, max_completion_tokens: 1 + this.#below(20) }
        const texts = []
        if (this.#chance(0.5)) {
          const { choices } = await model.chat.completions.create({ ...body, n: 1 + this.#below(3) })
          texts.push(...choices.map(({ message }) => message.content))
        } else {
          let text = ''
          const stop = this.#below(30)
          for await (const { choices } of await model.chat.completions.create({ ...body, stream: true })) {
            text += choices[0]?.delta.content ?? ''
            if (text.length > 3 * stop) break
          }
          texts.push(text)
        }
        if (!texts.every(text => answer.startsWith(text))) throw new Wrong(JSON.stringify(texts))
      }
    },
    'a request by fetch': {
      weight: 6,
      run: async model => {
        const messages = [{ role: 'user', content: 'Who are you?' }]
        const body = this.#pick([
          '', '{', 'null', '[]', '{"messages": []}', JSON.stringify({ messages, max_tokens: 2 }),
          JSON.stringify({ messages, max_tokens: 2, stream: true }), JSON.stringify({ messages, [this.#pick(REQUEST)]: 'x', max_tokens: 1 }),
          JSON.stringify({ prompt: ['a', 'b'], max_tokens: 2 }), JSON.stringify({ input: 'x', max_output_tokens: 2 }),
          JSON.stringify({ input: messages, max_output_tokens: 2, stream: true })
        ])
        const path = this.#pick(['chat/completions', 'chat/completions', 'completions', 'responses', 'models', 'models/x', 'embeddings'])
        const init = this.#chance(0.8) ? { method: 'POST', body } : {}
        const response = await model.fetch(`https://example.com/v1/${path}`, init)
        const said = await response.text()
        const isDisposed = this.#isLeaving && response.status === 500
        if (![200, 400, 404, 405].includes(response.status) && !isDisposed) throw new Wrong(`${response.status}: ${said}`)
      }
    },
    'tokens of a text': {
      weight: 6,
      run: async model => {
        const text = this.#pick(TEXTS)
        const ids = await model.tokenize(text)
        if (await model.detokenize(ids) !== text.toWellFormed()) throw new Wrong(`${JSON.stringify(text)} is ${ids}`)
        if (await model.countTokens(text) !== ids.length) throw new Wrong(`${JSON.stringify(text)} has not ${ids.length} tokens`)
        const messages = [{ role: 'user', content: text }]
        const tools = [{ name: 'f' }, { name: 'g', parameters: { type: 'object' } }].slice(this.#below(2))
        const [plain, told] = await Promise.all([{}, { tools }].map(options => model.countTokens(messages, options)))
        if (!(told > plain)) throw new Wrong(`${JSON.stringify(text)} has ${plain} tokens, and ${told} with tools`)
      }
    },
    logits: {
      weight: 4,
      run: async model => {
        const { name, ids } = this.#pick(this.#goldens)
        const logits = await model.logits(Uint32Array.from(ids))
        const key = `${this.#backend}: ${name}`
        const known = this.#logits.get(key) ?? this.#logits.set(key, logits).get(key)
        // How much of a prompt is computed at once decides the order of sums.
        const differs = known.findIndex((logit, id) => !(Math.abs(logit - logits[id]) < 1e-4))
        if (differs >= 0) throw new Wrong(`logits ${name}: ${differs} had ${known[differs]} and has ${logits[differs]}`)
      }
    },
    'a profile': {
      weight: 1,
      fails: ['missing-feature'],
      run: async model => {
        const { kernels } = await model.profile(this.#below(100), 1, this.#pick([{}, { temperature: 1, topP: 0.9 }]))
        if (kernels.length === 0) throw new Wrong('no kernels')
      }
    },
    'what is wrong': { weight: 20, fails: 'any', run: model => this.#wrong(model) },
    'models stored here': {
      weight: 5,
      fails: ['not-cached'],
      run: async () => {
        const { cache } = this.#BitNet
        switch (this.#below(6)) {
          case 0:
            return cache.clear()
          case 1:
            return cache.delete(this.#url)
          case 2: {
            const { damagedBytes } = await cache.verify(this.#url)
            if (damagedBytes > 0) throw new Wrong(`${damagedBytes} damaged bytes`)
            return
          }
          case 3:
            return cache.estimate()
          default:
            for (const { url } of await cache.list()) if (!url.endsWith(this.#url)) throw new Wrong(`${url} is stored`)
        }
      }
    },
    'another load, whole or aborted': {
      weight: 3,
      fails: ['not-cached', 'storage'],
      run: async () => {
        const abort = new AbortController()
        const reason = new Error('enough')
        const options = { worker: this.#pick([false, false, true]), cache: this.#pick(['use', 'off', 'refresh', 'only']), context: 256 }
        const aborts = this.#chance(0.5) ? this.#below(300) : undefined
        await this.#alone(async () => {
          if (aborts !== undefined) setTimeout(() => abort.abort(reason), aborts)
          const other = await this.#BitNet.load(this.#url, { ...options, signal: abort.signal })
          const { greedy_text: answer } = this.#goldens.find(({ name }) => name === 'who')
          const text = await other.generate('Who are you?', { maxTokens: 3 }).text()
          await other.dispose()
          if (text === '' || !answer.startsWith(text)) throw new Wrong(JSON.stringify(text))
        }).catch(error => {
          if (error !== reason) throw error
        })
      }
    },
    'a prompt that is too long': {
      weight: 2,
      fails: ['context-full'],
      run: async model => {
        await model.generate(this.#pick(['word ', 'x', '\ud83d', '🦊', '<|eot_id|>']).repeat(3000)).text()
        throw new Wrong('it fits')
      }
    },
    'a thousand calls at once': {
      weight: 0.2,
      run: async model => {
        const abort = new AbortController()
        const reason = new Error('enough')
        const { greedy_text: answer } = this.#goldens.find(({ name }) => name === 'who')
        const calls = Array.from({ length: 1000 }, async (_, n) => {
          const signal = n % 4 === 0 ? {} : { signal: abort.signal }
          const text = await model.generate('Who are you?', { maxTokens: 1, ...signal }).text().catch(error => {
            if (error !== reason) throw error
            return ''
          })
          if (!answer.startsWith(text)) throw new Wrong(JSON.stringify(text))
        })
        setTimeout(() => abort.abort(reason), 50)
        await Promise.all(calls)
      }
    }
  }

  /** Loads another model when no other one is being loaded. */
  #alone(load) {
    const loaded = this.#loaded.then(load)
    this.#loaded = loaded.catch(() => {})
    return loaded
  }

  /** A call with something wrong somewhere, which may happen to be right. */
  async #wrong(model) {
    const value = this.#pick(VALUES)
    const option = { [this.#pick(OPTIONS)]: value }
    const short = { maxTokens: 2 }
    const read = generation => generation.text()
    const messages = [{ role: 'user', content: 'x' }]
    const asking = { messages, max_completion_tokens: 2, [this.#pick(REQUEST)]: value }
    const responding = { input: 'x', max_output_tokens: 2, [this.#pick(RESPONSE_REQUEST)]: value }
    const wrongly = { worker: false, context: 64, [this.#pick(LOAD_OPTIONS)]: value }
    const { cache } = this.#BitNet
    await this.#pick([
      () => read(model.generate(value, short)),
      () => read(model.generate('x', value ?? short)),
      () => read(model.generate('x', { ...short, ...option })),
      () => read(model.generate('x', { ...short, ...option })),
      () => read(model.generate([...messages, value], short)),
      () => Promise.all(model.generateMany(value, short).map(read)),
      () => Promise.all(model.generateMany([value, 'x'], short).map(read)),
      () => read(model.generate('x', { ...short, tools: [{ name: 'f' }], ...option })),
      () => read(model.generate([...messages, { role: 'assistant', content: 'x', toolCalls: value }, { role: 'tool', content: 'y' }], short)),
      () => model.runTools(value),
      () => model.runTools({ ...short, messages, tools: value }),
      () => model.createChat(value),
      () => read(model.createChat({ messages: value }).send('x', short)),
      () => read(model.createChat({ system: value, overflow: 'slide' }).send('x', short)),
      () => read(model.createChat().send(value, short)),
      () => read(model.createChat().send('x', { ...short, ...option })),
      () => read(model.summarize(value, short)),
      () => read(model.summarize('A day.', { ...short, ...option })),
      () => read(model.summarize('A day.', { ...short, [this.#pick(['type', 'length', 'format', 'context'])]: value })),
      () => model.tokenize(value),
      () => model.tokenize('x', { special: value }),
      () => model.detokenize(value),
      () => model.countTokens(value),
      () => model.countTokens(messages, value),
      () => model.countTokens(messages, { tools: [{ name: 'f' }], ...option }),
      () => model.logits(value),
      () => model.profile(value, value, value),
      () => drain(model.chat.completions.create(value)),
      () => drain(model.chat.completions.create(asking)),
      () => drain(model.chat.completions.create(asking)),
      () => drain(model.responses.create(value)),
      () => drain(model.responses.create(responding)),
      () => this.#alone(() => this.#BitNet.load(value, { worker: false })).then(other => other.dispose()),
      () => this.#alone(() => this.#BitNet.load(this.#url, wrongly)).then(other => other.dispose()),
      () => cache.verify(value),
      () => cache.delete(value)
    ])()
  }
}

/** Reads an answer of OpenAI's shape to its end if it is a stream. */
const drain = async asked => {
  const answer = await asked
  if (Symbol.asyncIterator in answer) for await (const _ of answer);
}
