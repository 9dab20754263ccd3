// Generating: streams, stopping, order, chats, disposing; in a worker and in this thread alike.
import { expect, failure, GOLDEN_MODEL, goldens, load, RANDOM_MODEL, test } from './harness'

const golden = (name: string) => goldens.find(golden => golden.name === name)!

/** The golden model's answers to `Who are you?`, and to `How small?` after its first sentence. */
const WHO = golden('who').greedy_text
const SMALL = golden('follow_up').greedy_text
/** Its first sentence: so many tokens. */
const SENTENCE = 'I am a very small model.'
const TOKENS = 7

for (const worker of [true, false]) {
  test.describe(worker ? 'in a worker' : 'in this thread', () => {
    const where = worker ? {} : { worker: false }
    test.beforeEach(async ({ shared }) => { await load(shared, where, GOLDEN_MODEL) })

    test('text(), tokens(), stream() and the loop give the same, and the stats', { tag: '@quick' }, async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const generation = window.model.generate('Who are you?')
        let looped = ''
        for await (const text of generation) looped += text
        const tokens = []
        for await (const token of generation.tokens()) tokens.push(token)
        const reader = generation.stream().getReader()
        let streamed = ''
        for (let read = await reader.read(); !read.done; read = await reader.read()) streamed += read.value
        return { text: await generation.text(), looped, streamed, tokens, stats: await generation.stats }
      })
      expect(found.text).toBe(WHO)
      expect([found.looped, found.streamed, found.tokens.map(({ text }) => text).join('')]).toEqual([found.text, found.text, found.text])
      expect(found.stats).toMatchObject({ promptTokens: 22, reusedTokens: 0, completionTokens: 22, finishReason: 'stop' })
      expect(found.tokens.filter(({ id }) => id !== undefined).length).toBe(22)
      for (const rate of ['timeToFirstToken', 'prefillTokensPerSecond', 'decodeTokensPerSecond'] as const) {
        expect(found.stats[rate]).toBeGreaterThan(0)
      }
    })

    test('logprobs and logitBias: what tokens were likely, and another one forced', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const told = []
        for await (const token of model.generate('Who are you?', { logprobs: 2, maxTokens: 3 }).tokens()) told.push(token)
        const [first] = told
        const [, second] = first!.top!
        const other = model.generate('Who are you?', { logitBias: { [first!.id!]: -100, [second!.id]: 100 }, logprobs: 0, maxTokens: 1 })
        const forced = []
        for await (const token of other.tokens()) forced.push(token)
        return { told, forced }
      })
      expect(found.told.map(({ bytes }) => new TextDecoder().decode(Uint8Array.from(bytes!)))).toEqual(['I', ' am', ' a'])
      for (const { id, text, logprob, top } of found.told) {
        expect(top![0]).toEqual({ id, text, logprob })
        expect(top![1]!.logprob).toBeLessThan(logprob!)
        expect(Math.exp(logprob!) + Math.exp(top![1]!.logprob)).toBeLessThan(1.00001)
      }
      const [, second] = found.told[0]!.top!
      expect(found.forced).toMatchObject([{ id: second!.id, logprob: second!.logprob, top: [] }])
    })

    test('maxTokens and stop texts end it', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const ended = async (options: object) => {
          const generation = window.model.generate('Who are you?', options)
          return { text: await generation.text(), reason: (await generation.stats).finishReason }
        }
        return [await ended({ maxTokens: 3 }), await ended({ stop: ['model', 'never said'] }), await ended({ stop: ['ry sm'] })]
      })
      expect(found).toEqual([
        { text: 'I am a', reason: 'length' },
        { text: 'I am a very small ', reason: 'stop' },
        { text: 'I am a ve', reason: 'stop' }
      ])
    })

    test('an abort rejects the readers with its reason and ends the run', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const abort = new AbortController()
        const reason = new Error('enough')
        const generation = window.model.generate('Once there was', { raw: true, signal: abort.signal })
        let texts = 0
        let why
        try {
          for await (const _ of generation) if (++texts === 3) abort.abort(reason)
        } catch (error) {
          why = error
        }
        const stats = await generation.stats
        const early = window.model.generate('Once there was', { raw: true, signal: AbortSignal.abort(reason) })
        return {
          reason: why === reason, texts, stats,
          again: await generation.text().catch(error => error === reason),
          early: await early.text().catch(error => error === reason), earlyStats: await early.stats
        }
      })
      expect(found).toMatchObject({ reason: true, texts: 3, again: true, early: true })
      expect(found.stats.finishReason).toBe('abort')
      expect(found.stats.completionTokens).toBeLessThan(30)
      // A CPU computes no tokens ahead.
      expect(found.stats.unusedTokens).toBe(0)
      expect(found.earlyStats).toMatchObject({ finishReason: 'abort', completionTokens: 0 })
      // The model is as good as before.
      expect(await page.evaluate(() => window.model.generate('Who are you?', { maxTokens: 3 }).text())).toBe('I am a')
    })

    test('an abort while the prompt is computed does not wait for its end', async ({ shared: page }) => {
      const found = await page.evaluate(async prompt => {
        const abort = new AbortController()
        const generation = window.model.generate(prompt, { raw: true, signal: abort.signal })
        setTimeout(() => abort.abort(), 50)
        await generation.text().catch(() => {})
        return generation.stats
      }, golden('long').text)
      expect(found).toMatchObject({ finishReason: 'abort', completionTokens: 0 })
      expect(await page.evaluate(() => window.model.generate('Who are you?', { maxTokens: 3 }).text())).toBe('I am a')
    })

    test('leaving the loop ends the run quietly', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const generation = window.model.generate('Once there was', { raw: true })
        let looped = ''
        for await (const text of generation) {
          looped += text
          if (looped.length > 10) break
        }
        return { looped, text: await generation.text(), stats: await generation.stats }
      })
      expect(found.stats.finishReason).toBe('abort')
      expect(found.text).toBe(found.looped)
    })

    test('what is no generation waits for those before it, and calls do not mix', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const ended: string[] = []
        const note = async (name: string, work: Promise<unknown>) => {
          const value = await work
          ended.push(name)
          return value
        }
        const alone = await model.generate('Who are you?', { maxTokens: 4 }).text()
        const together = await Promise.all([
          note('a', model.generate('Who are you?', { maxTokens: 4 }).text()),
          note('b', model.logits(Uint32Array.of(1, 2))),
          note('c', model.generate('Hi', { maxTokens: 2 }).text()),
          note('d', model.generate('Who are you?', { maxTokens: 4 }).text())
        ])
        const generation = model.generate('Hi', { maxTokens: 8 })
        let running = true
        generation.stats.then(() => { running = false })
        await model.tokenize('Meanwhile, a question')
        return { alone, together: [together[0], together[3]], ended, answeredMeanwhile: running, last: await generation.text() }
      })
      expect(found.together).toEqual([found.alone, found.alone])
      expect(found.ended).toEqual(['a', 'b', 'c', 'd'])
      expect(found.answeredMeanwhile).toBe(true)
    })

    test('several inputs decode as a batch, each to the text that it gets alone', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const inputs = ['Who are you?', 'Hi', 'Tell me a story about a brave cat', Uint32Array.of(1, 2, 3)]
        const options = { maxTokens: 12, temperature: 0.8, topK: 20, seed: 5 }
        const alone: string[] = []
        for (const input of inputs) alone.push(await model.generate(input, options).text())
        const generations = model.generateMany(inputs, options)
        const left = model.generate('Who are you?', { maxTokens: 100 })
        for await (const text of left) if (text) break
        const refused = await model.generate('x', { topP: 3 }).text().catch(error => error.code)
        const together = await Promise.all(generations.map(generation => generation.text()))
        const stats = await Promise.all(generations.map(({ stats }) => stats))
        const { maxBatch, cacheBytes } = model.info
        const none = await Promise.resolve().then(() => model.generateMany('x' as never)).catch(error => error.code)
        return { alone, together, refused, none, maxBatch, cacheBytes, batch: stats.map(({ batch }) => batch) }
      })
      expect(found.together).toEqual(found.alone)
      expect(Math.max(...found.batch)).toBeGreaterThan(1)
      expect(found).toMatchObject({ refused: 'bad-option', none: 'bad-option', maxBatch: 8 })
      expect(found.cacheBytes).toBeGreaterThan(0)
    })

    test('the same seed draws the same text', async ({ shared: page }) => {
      const texts = await page.evaluate(async () => {
        const draw = (seed?: number) =>
          window.model.generate('Once there was', { raw: true, temperature: 20, topK: 50, maxTokens: 8, ...(seed === undefined ? {} : { seed }) }).text()
        return [await draw(7), await draw(7), await draw(8), await draw(), await draw()]
      })
      expect(texts[0]).toBe(texts[1])
      expect(new Set(texts).size).toBeGreaterThan(2)
    })

    test('topP and minP leave only tokens that are likely enough', async ({ shared: page }) => {
      const texts = await page.evaluate(async () => {
        const draw = (options: object) => window.model.generate('Who are you?', { temperature: 30, seed: 3, maxTokens: 8, ...options }).text()
        // At this temperature hundreds of tokens are likely; a narrow filter leaves the likeliest.
        return {
          all: await draw({}), open: await draw({ topP: 1, minP: 0 }), best: await draw({ temperature: 0 }),
          topP: await draw({ topP: 0.001 }), minP: await draw({ minP: 1 }), both: await draw({ topP: 0.9, minP: 0.5 })
        }
      })
      expect(texts.open).toBe(texts.all)
      expect(texts.all).not.toBe(texts.best)
      expect([texts.topP, texts.minP]).toEqual([texts.best, texts.best])
      expect(texts.both).not.toBe('')
    })

    test('a chat remembers, and computes only what is new', async ({ shared: page }) => {
      const found = await page.evaluate(async TOKENS => {
        const chat = window.model.createChat({ system: 'Answer like a sailor.' })
        const first = chat.send('Where is the boat?', { maxTokens: TOKENS })
        const asked = chat.messages
        const answer = await first.text()
        await first.stats
        const fork = chat.fork()
        const second = chat.send('How small?', { maxTokens: 8 })
        const answered = await second.text()
        const stats = await second.stats
        const left = chat.send('And then?', { temperature: 20, seed: 1 })
        let heard = ''
        for await (const text of left) {
          heard += text
          if (heard.length > 5) break
        }
        await left.stats
        const messages = chat.messages
        chat.reset()
        return { asked, answer, answered, heard, stats, messages, reset: chat.messages, fork: fork.messages }
      }, TOKENS)
      const system = { role: 'system', content: 'Answer like a sailor.' }
      const question = { role: 'user', content: 'Where is the boat?' }
      expect(golden('system').greedy_text.startsWith(found.answer)).toBe(true)
      expect(found.asked).toEqual([system, question])
      expect(found.fork).toEqual([system, question, { role: 'assistant', content: found.answer }])
      expect(found.messages).toEqual([
        ...found.fork,
        { role: 'user', content: 'How small?' },
        { role: 'assistant', content: found.answered },
        { role: 'user', content: 'And then?' },
        { role: 'assistant', content: found.heard }
      ])
      expect(found.reset).toEqual([system])
      expect(found.stats.reusedTokens).toBeGreaterThan(20)
      expect(found.stats.promptTokens).toBeGreaterThan(found.stats.reusedTokens)
    })

    test('a conversation is changed, and only what comes after the change is computed', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const chat = model.createChat({ messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hi.' }], maxTokens: 4 })
        const read = async (generation: ReturnType<typeof chat.send>) =>
          ({ text: await generation.text(), stats: await generation.stats, said: chat.messages.at(-1)!.content })
        const first = await read(chat.send('Who are you?'))
        const longer = await read(chat.continue({ maxTokens: 5 }))
        const again = await read(chat.regenerate())
        const edited = await read(chat.edit(2, 'Who are you, and why?')!)
        const begun = await read(chat.regenerate({ prefix: 'I am' }))
        chat.edit(3, 'I am a fox.')
        const messages = [...chat.messages, { role: 'user' as const, content: 'And?' }, { role: 'assistant' as const, content: 'A', prefix: true }]
        const [count, generation] = [await model.countTokens(messages), model.generate(messages, { maxTokens: 1 })]
        return { first, longer, again, edited, begun, messages: chat.messages, count, prompt: (await generation.stats).promptTokens }
      })
      const { first, longer, again, edited, begun } = found
      const short = ({ stats }: typeof first) => stats.promptTokens - stats.reusedTokens
      expect(first.text).not.toBe('')
      expect(longer.said).toBe(first.text + longer.text)
      expect(longer.stats.completionTokens).toBeLessThanOrEqual(5)
      expect(again.said).toBe(first.text)
      expect([short(longer), short(again)]).toEqual([1, 1])
      // The end of the message, and `Assistant: `, in which each character is a token.
      expect(short(edited)).toBeLessThan(20)
      expect(edited.stats.reusedTokens).toBeGreaterThan(20)
      expect(begun.said).toBe(`I am${begun.text}`)
      expect(short(begun)).toBeLessThan(6)
      expect(found.messages.map(({ content }) => content)).toEqual(['Hi', 'Hi.', 'Who are you, and why?', 'I am a fox.'])
      expect(found.prompt).toBe(found.count)
    })

    test('a chat may begin with messages, and each branch of a fork gives what it would give alone', async ({ shared: page }) => {
      const messages = [{ role: 'user', content: 'Who are you?' }, { role: 'assistant', content: SENTENCE }] as const
      const alone = await page.evaluate(async messages => {
        const chat = window.model.createChat({ messages })
        return chat.send('Where is the boat?', { maxTokens: 5 }).text()
      }, messages)
      await load(page, where, GOLDEN_MODEL)
      const found = await page.evaluate(async messages => {
        const chat = window.model.createChat({ messages })
        const fork = chat.fork()
        // At once, so that each finds the other's tokens in the cache.
        const branches = await Promise.all([chat.send('How small?').text(), fork.send('Where is the boat?', { maxTokens: 5 }).text()])
        const later = chat.fork()
        const last = await later.send('Who are you?', { maxTokens: 2 }).text()
        return { branches, last, messages: [chat.messages, fork.messages, later.messages] }
      }, messages)
      expect(found.branches).toEqual([SMALL, alone])
      expect(alone).not.toBe('')
      const turn = (user: string, assistant: string) => [{ role: 'user', content: user }, { role: 'assistant', content: assistant }]
      const first = [...messages, ...turn('How small?', SMALL)]
      expect(found.messages).toEqual([
        first, [...messages, ...turn('Where is the boat?', alone)], [...first, ...turn('Who are you?', found.last)]
      ])
    })

    test('turns sent at once are answered one after the other', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const chat = window.model.createChat()
        const answers = await Promise.all([chat.send('Hi', { maxTokens: 2 }).text(), chat.send('Who are you?', { maxTokens: 3 }).text()])
        await new Promise(resolve => setTimeout(resolve))
        return { answers, messages: chat.messages }
      })
      expect(found.messages).toEqual([
        { role: 'user', content: 'Hi' }, { role: 'assistant', content: found.answers[0] },
        { role: 'user', content: 'Who are you?' }, { role: 'assistant', content: found.answers[1] }
      ])
    })

    test('a turn that fails leaves the chat as it was', async ({ shared: page }) => {
      await load(page, { ...where, context: 64 }, GOLDEN_MODEL)
      const found = await page.evaluate(async () => {
        const chat = window.model.createChat()
        const code = await chat.send('word '.repeat(100)).text().catch(error => error.code)
        await new Promise(resolve => setTimeout(resolve))
        return { code, messages: chat.messages, next: await chat.send('Who are you?', { maxTokens: 3 }).text() }
      })
      expect(found).toEqual({ code: 'context-full', messages: [], next: 'I am a' })
    })

    test('bad input fails with its code and leaves the model usable', async ({ shared: page }) => {
      await load(page, { ...where, context: 32 }, GOLDEN_MODEL)
      const failures: [call: string, code: string, message: RegExp][] = [
        [`generate('x', { temprature: 1 }).text()`, 'bad-option', /temprature/],
        [`generate('x', { temperature: 'hot' }).text()`, 'bad-option', /temperature/],
        [`generate('x', { temperature: NaN }).text()`, 'bad-option', /temperature/],
        [`generate('x', { temperature: -1 }).text()`, 'bad-option', /temperature/],
        [`generate('x', { topP: 2 }).text()`, 'bad-option', /topP/],
        [`generate('x', { topK: 1.5 }).text()`, 'bad-option', /topK/],
        [`generate('x', { maxTokens: 0 }).text()`, 'bad-option', /maxTokens/],
        [`generate('x', { maxTokens: -1 }).text()`, 'bad-option', /maxTokens/],
        [`generate('x', { stop: 'a' }).text()`, 'bad-option', /stop/],
        [`generate('x', { stop: [''] }).text()`, 'bad-option', /stop/],
        [`generate('x', { seed: 'a' }).text()`, 'bad-option', /seed/],
        [`generate('x', { special: true }).text()`, 'bad-option', /special/],
        [`generate('x', { logprobs: 21 }).text()`, 'bad-option', /logprobs/],
        [`generate('x', { logitBias: { 5000: 1 } }).text()`, 'bad-option', /logitBias.*5000/],
        [`generate('').text()`, 'bad-option', /empty/],
        [`generate([]).text()`, 'bad-option', /messages/],
        [`generate([{ role: 'robot', content: 'x' }]).text()`, 'bad-option', /messages\[0\]/],
        [`generate([{ role: 'user' }]).text()`, 'bad-option', /messages\[0\]/],
        [`generate(new Uint32Array()).text()`, 'bad-option', /empty|none/],
        [`generate(Uint32Array.of(1, 606)).text()`, 'bad-option', /606/],
        [`generate(7).text()`, 'bad-option', /prompt/],
        [`generate('word '.repeat(200)).text()`, 'context-full', /\d+ tokens.*32/],
        [`generate('x', { maxTokens: 0 }).stats`, 'bad-option', /maxTokens/],
        [`logits(new Uint32Array())`, 'bad-option', /empty|none/],
        [`logits(Uint32Array.of(4294967295))`, 'bad-option', /4294967295/],
        [`logits([1, 2])`, 'bad-option', /Uint32Array/],
        [`logits(new Uint32Array(33))`, 'context-full', /33 tokens.*32/],
        [`detokenize(Uint32Array.of(5000))`, 'bad-option', /5000/],
        [`tokenize(5)`, 'bad-option', /text/],
        [`countTokens([])`, 'bad-option', /messages/],
        [`countTokens(7)`, 'bad-option', /`input`.*string/],
        [`restoreChat('saved')`, 'bad-option', /chat.*Blob/],
        [`restoreChat(new Blob(['saved', new Uint8Array(99)]))`, 'bad-option', /chat/]
      ]
      for (const [call, code, message] of failures) {
        const found = await failure(page, `await model.${call}`)
        expect(found, call).toMatchObject({ code, message: expect.stringMatching(message) })
      }
      expect(await page.evaluate(() => window.model.generate('Who are you?', { maxTokens: 3 }).text())).toBe('I am a')
    })

    test('megabytes, halves of characters, a thousand stop texts and a thousand calls at once', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const long = []
        for (const text of ['\ud83d', '<|eot_id|>']) {
          long.push(await model.generate(text.repeat((1 << 20) / text.length)).text().catch(error => error.code))
        }
        const never = Array.from({ length: 1000 }, (_, n) => `never ${n}`)
        const stop = (stop: string[]) => model.generate('Who are you?', { stop }).text()
        const abort = new AbortController()
        const calls = Array.from({ length: 1000 }, (_, n) =>
          model.generate('Who are you?', n % 20 === 0 ? { maxTokens: 3 } : { signal: abort.signal }).text().catch(error => error))
        abort.abort('enough')
        return {
          long,
          halves: [[...await model.tokenize('a\ud83d')], [...await model.tokenize('a\ufffd')]],
          stopped: [await stop([...never, 'very']), await stop(never), await stop(['never '.repeat(200)])],
          said: [...new Set(await Promise.all(calls))]
        }
      })
      expect(found.long).toEqual(['context-full', 'context-full'])
      expect(found.halves[0]).toEqual(found.halves[1])
      expect(found.stopped).toEqual(['I am a ', WHO, WHO])
      expect(found.said).toEqual(['I am a', 'enough'])
    })

    test('a raw empty string is the begin-of-text token', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const generation = window.model.generate('', { raw: true, maxTokens: 5 })
        return [await generation.text(), (await generation.stats).promptTokens]
      })
      expect(found).toEqual(['A river ran past the', 1])
    })

    test('text never becomes special tokens, but in a raw string that says so', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const tokens = async (options: object) => {
          const generation = model.generate('a<|eot_id|>', { ...options, maxTokens: 1 })
          await generation.text()
          return (await generation.stats).promptTokens
        }
        return {
          plain: await tokens({ raw: true }), special: await tokens({ raw: true, special: true }), chat: await tokens({}),
          plainChat: await model.countTokens([{ role: 'user', content: 'a' }]), ids: [...await model.tokenize('<|eot_id|>')]
        }
      })
      expect(found.chat - found.plainChat).toBe(found.plain - 2)
      expect(found.special).toBe(3)
      expect(found.plain).toBeGreaterThan(4)
      expect(found.ids).not.toContain(605)
    })

    test('calls reject with the reason of their signal, and leave the model usable', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const chat = model.createChat()
        await chat.send('Who are you?', { maxTokens: 3 }).text()
        const saved = await chat.save()
        const outcomes = (signal: AbortSignal) => Promise.all([
          model.tokenize('a', { signal }), model.logits(Uint32Array.of(1, 2), { signal }), chat.save({ signal }),
          model.restoreChat(saved, { signal }), model.prewarm(chat.messages.slice(0, 1), { signal })
        ].map(call => call.then(() => 'done', reason => reason)))
        const controller = new AbortController()
        const running = outcomes(controller.signal)
        controller.abort('meanwhile')
        return [...await outcomes(AbortSignal.abort('before')), ...await running, ...await outcomes(new AbortController().signal)]
      })
      expect(found).toEqual(['before', 'meanwhile', 'done'].flatMap(outcome => Array(5).fill(outcome)))
    })

    test('what was computed ahead is not computed again', async ({ shared: page }) => {
      const reused = await page.evaluate(async () => {
        const { model } = window
        const system = { role: 'system' as const, content: 'Be kind.' }
        await model.prewarm([system])
        const answer = model.generate([system, { role: 'user', content: 'Who are you?' }], { maxTokens: 1 })
        return (await answer.stats).reusedTokens
      })
      expect(reused).toBeGreaterThan(3)
    })

    test('after dispose everything rejects, also what runs and what waits', async ({ shared: page }) => {
      const found = await page.evaluate(async () => {
        const { model } = window
        const code = (work: Promise<unknown>) => work.then(() => 'none', error => error.code)
        const running = model.generate('Once there was', { raw: true })
        const reader = running.tokens()
        await reader.next()
        const waiting = model.generate('Once there was', { raw: true })
        await model.dispose()
        await model.dispose()
        return {
          running: [await code(running.text()), await code(running.stats)],
          waiting: [await code(waiting.text()), await code(waiting.stats)],
          later: await Promise.all([
            code(model.generate('x').text()), code(model.tokenize('x')), code(model.detokenize(Uint32Array.of(1))),
            code(model.countTokens('x')), code(model.logits(Uint32Array.of(1))), code(model.createChat().send('x').text())
          ]),
          info: model.info.vocabSize
        }
      })
      expect([...found.running, ...found.waiting, ...found.later]).toEqual(Array(10).fill('disposed'))
      expect(found.info).toBe(606)
    })

    test('`await using` lets go of the model', async ({ shared: page }) => {
      const code = await page.evaluate(async ([url, worker]) => {
        const { BitNet } = window.tritloom
        const model = await BitNet.load(url, { worker })
        await model[Symbol.asyncDispose]()
        return model.tokenize('x').catch(error => error.code)
      }, [RANDOM_MODEL, worker] as const)
      expect(code).toBe('disposed')
    })

    test('two models live side by side', async ({ shared: page }) => {
      const found = await page.evaluate(async ([url, worker]) => {
        const { BitNet } = window.tritloom
        const [a, b] = await Promise.all([BitNet.load(url, { worker }), BitNet.load(url, { worker })])
        const ids = Uint32Array.of(1, 2, 3)
        const [x, y] = await Promise.all([a.logits(ids), b.logits(ids)])
        await a.dispose()
        const z = await b.logits(ids)
        return x.length === 320 && x.every((value, index) => value === y[index] && value === z[index])
      }, [RANDOM_MODEL, worker] as const)
      expect(found).toBe(true)
    })
  })
}

test('a saved chat goes on after the page was loaded anew', async ({ shared: page }) => {
  await load(page, {}, GOLDEN_MODEL)
  const before = await page.evaluate(async () => {
    const chat = window.model.createChat({ system: 'Answer like a sailor.' })
    await chat.send('Where is the boat?', { maxTokens: 7 }).text()
    const saved = await chat.save()
    const { messages } = chat
    await (await caches.open('chats')).put('/chat', new Response(saved))
    const next = chat.send('How small?', { maxTokens: 8 })
    return { messages, text: await next.text(), stats: await next.stats }
  })
  await page.reload()
  await page.waitForFunction(() => window.tritloom)
  await load(page, {}, GOLDEN_MODEL)
  const after = await page.evaluate(async () => {
    const kept = await (await caches.open('chats')).match('/chat')
    await caches.delete('chats')
    const chat = await window.model.restoreChat(await kept!.blob())
    const { messages } = chat
    const next = chat.send('How small?', { maxTokens: 8 })
    return { messages, text: await next.text(), stats: await next.stats }
  })
  expect([after.messages, after.text]).toEqual([before.messages, before.text])
  expect(after.stats.reusedTokens).toBe(before.stats.reusedTokens)
  expect(after.stats.reusedTokens).toBeGreaterThan(20)
})
