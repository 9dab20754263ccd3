// Answers OpenAI's requests from a loaded model. Fetched at the first request.
import { checkOptions, checkSignal } from '../check.js'
import type { Generation } from '../generation.js'
import { readChatRequest, readCompletionRequest, RequestError } from './request.js'
import type { Job } from './request.js'
import { CHAT_FORM, COMPLETION_FORM, errorOf, frame, Offsets, usageOf } from './response.js'
import type { Form } from './response.js'
import type {
  ChatCompletion, ChatCompletionChunk, ChatCompletionOptions, ChatCompletionStream, CompletionUsage
} from './types.js'
import type { GenerateOptions, Input, ModelInfo, Stats, Token } from '../types.js'

/** The part of a model that answers requests. */
export interface Answerer {
  info: Pick<ModelInfo, 'name' | 'thinking'>
  generate(input: Input, options: GenerateOptions): Generation
}

/** One generation of a request. */
interface Single {
  index: number
  input: Input
  options: GenerateOptions
}

/** A chunk, or an answer without its usage. */
interface Framed<Choice> extends ReturnType<typeof frame> {
  choices: Choice[]
  usage?: CompletionUsage | null
}

/** `model.chat.completions.create`. */
export async function create(
  model: Answerer, body: unknown, options: ChatCompletionOptions = {}
): Promise<ChatCompletion | ChatCompletionStream> {
  checkOptions(options, ['signal'])
  const { signal } = options
  checkSignal(signal)
  const job = readChatRequest(body)
  return job.stream
    ? await begin(model, job, CHAT_FORM, signal) as Chunks<ChatCompletionChunk>
    : await whole(model, job, CHAT_FORM, signal) as ChatCompletion
}

/** The name of the model in answers, if the request gives none. */
const nameOf = (model: Answerer): string => model.info.name || 'tritloom'

/** `model.fetch`. */
export async function answer(
  model: Answerer, input: string | URL | Request, init?: RequestInit
): Promise<Response> {
  const request = new Request(input, init)
  // `request.signal` follows this one. But the browser may collect it as garbage before it aborts.
  const signal = init?.signal ?? request.signal
  signal.throwIfAborted()
  try {
    return await route(model, request, signal)
  } catch (error) {
    signal.throwIfAborted()
    const { status, body } = errorOf(error)
    // Only a lost device may work next time. Clients must not repeat other requests.
    return json(body, status, { 'x-should-retry': String(status === 503) })
  }
}

async function route(model: Answerer, request: Request, signal: AbortSignal): Promise<Response> {
  const { pathname } = new URL(request.url)
  const path = /\/v1(\/.*?)\/?$/.exec(pathname)?.[1] ?? pathname
  const name = /^\/models\/([^/]+)$/.exec(path)?.[1]
  switch (name ? '/models/NAME' : path) {
    case '/chat/completions':
      return complete(model, readChatRequest(await bodyOf(request)), CHAT_FORM, signal)
    case '/completions':
      return complete(model, readCompletionRequest(await bodyOf(request)), COMPLETION_FORM, signal)
    case '/models':
      allow(request, 'GET')
      return json({ object: 'list', data: [described(nameOf(model))] })
    case '/models/NAME':
      allow(request, 'GET')
      return json(described(decoded(name!)))
    default: {
      const why = `Invalid URL (${request.method} ${pathname})`
      throw new RequestError(why, 'unknown_url', null, 404)
    }
  }
}

/** Decodes a name that was part of an address. If it cannot be decoded, it stays as it is. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** Files do not say when their model was made, so `created` is 0. */
const described = (id: string) =>
  ({ id, object: 'model', created: 0, owned_by: 'tritloom' })

async function bodyOf(request: Request): Promise<unknown> {
  allow(request, 'POST')
  const text = await request.text()
  try {
    return JSON.parse(text)
  } catch {
    const why = 'We could not parse the JSON body of your request.'
    throw new RequestError(why, 'invalid_json')
  }
}

function allow({ method, url }: Request, allowed: string): void {
  if (method === allowed) return
  const why = `Not allowed to ${method} on ${new URL(url).pathname}: only ${allowed}.`
  throw new RequestError(why, 'method_not_supported', null, 405)
}

async function complete<Whole, Part, Logprobs>(
  model: Answerer, job: Job, form: Form<Whole, Part, Logprobs>, signal: AbortSignal
): Promise<Response> {
  if (!job.stream) return json(await whole(model, job, form, signal))
  const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }
  return new Response(events(await begin(model, job, form, signal), signal), { headers })
}

const json = (body: object, status = 200, headers: Record<string, string> = {}): Response =>
  Response.json(body, { status, headers })

/** The generations of a job: for each prompt, all its choices. */
function runs(model: Answerer, { inputs, n, options }: Job): Single[] {
  if (options.thinking && !model.info.thinking) {
    const why = 'Unsupported parameter: \'reasoning_effort\': the model cannot be told to reason.'
    throw new RequestError(why, 'unsupported_parameter', 'reasoning_effort')
  }
  const { seed } = options
  return inputs.flatMap((input, first) => Array.from({ length: n }, (_, choice) => ({
    index: first * n + choice,
    input,
    options: seed === undefined ? options : { ...options, seed: (seed + choice) >>> 0 }
  })))
}

/** The reason in OpenAI's words. An aborted answer never gets here, because reading it rejects. */
const reasonOf = ({ finishReason }: Stats) => finishReason === 'length' ? 'length' : 'stop'

/** Whether OpenAI's interface gives the token's probability. It does not for reasoning. */
const hasLogprob = ({ channel, logprob }: Token) => channel === 'answer' && logprob !== undefined

/**
 * Starts the generations of a job together, so that they decode as a batch. `leave` stops those
 * that run. It is called if one fails, because the others are of no use then.
 */
function start(model: Answerer, job: Job, signal: AbortSignal | undefined) {
  const left = new AbortController()
  const stop = AbortSignal.any(signal ? [signal, left.signal] : [left.signal])
  const started = runs(model, job).map(({ index, input, options }) =>
    ({ index, generation: model.generate(input, { ...options, signal: stop }) }))
  return { started, leave: () => left.abort() }
}

async function whole<Whole, Part, Logprobs>(
  model: Answerer, job: Job, form: Form<Whole, Part, Logprobs>, signal: AbortSignal | undefined
): Promise<Framed<Whole>> {
  const choices: Whole[] = []
  const all: Stats[] = []
  const { started, leave } = start(model, job, signal)
  try {
    for (const { index, generation } of started) {
      const text = await generation.text()
      const stats = await generation.stats
      all.push(stats)
      const tokens: Token[] = []
      if (job.options.logprobs !== undefined) {
        for await (const token of generation.tokens()) if (hasLogprob(token)) tokens.push(token)
      }
      const logprobs = job.options.logprobs === undefined ? null : form.logprobs(tokens, new Offsets())
      choices.push(form.whole(index, text, reasonOf(stats), logprobs))
    }
  } finally {
    leave()
  }
  const fields = frame(form.id, form.object, job.model ?? nameOf(model))
  return { ...fields, choices, usage: usageOf(all, job.n) }
}

/** The chunks of a job, from all its generations, as they come. */
async function* chunks<Whole, Part, Logprobs>(
  model: Answerer, job: Job, form: Form<Whole, Part, Logprobs>, signal: AbortSignal
): AsyncGenerator<Framed<Part>, void, undefined> {
  const fields = frame(form.id, form.chunk, job.model ?? nameOf(model))
  const all: Stats[] = []
  const { started, leave } = start(model, job, signal)
  const parts = started.map(async function* ({ index, generation }) {
    yield* partsOf(form, index, generation.tokens())
    const stats = all[index] = await generation.stats
    yield form.end(index, reasonOf(stats))
  })
  try {
    for await (const choice of merged(parts)) {
      yield { ...fields, choices: [choice], ...(job.usage ? { usage: null } : {}) }
    }
  } finally {
    leave()
  }
  if (job.usage) yield { ...fields, choices: [], usage: usageOf(all, job.n) }
}

/** The parts of a choice, as its tokens come. The first part comes with the first token. */
async function* partsOf<Whole, Part, Logprobs>(
  form: Form<Whole, Part, Logprobs>, index: number, tokens: AsyncIterable<Token>
): AsyncGenerator<Part, void, undefined> {
  let opening = form.begin(index)
  const offsets = new Offsets()
  for await (const token of tokens) {
    if (opening) yield opening
    opening = undefined
    const logprobs = hasLogprob(token) ? form.logprobs([token], offsets) : null
    const { text, channel } = token
    if (logprobs || text && channel === 'answer') yield form.text(index, text, logprobs)
  }
  if (opening) yield opening
}

/** Yields the values of all generators, as they come. */
async function* merged<T>(all: AsyncGenerator<T, void>[]): AsyncGenerator<T, void, undefined> {
  /**
   * The values that have come, in order. A race of all promises would keep the promises of every
   * round.
   */
  const ready: (() => IteratorResult<T, void> & { from: AsyncGenerator<T, void> })[] = []
  let wake = () => {}
  const ask = (from: AsyncGenerator<T, void>) => {
    from.next().then(
      result => ready.push(() => ({ from, ...result })),
      error => ready.push(() => { throw error })
    ).then(() => wake())
  }
  all.forEach(ask)
  let running = all.length
  while (running > 0) {
    const first = ready.shift()
    if (!first) {
      await new Promise<void>(resolve => { wake = resolve })
      continue
    }
    const { from, done, value } = first()
    if (done) {
      running -= 1
      continue
    }
    yield value as T
    // The generator is asked again after all others, so that they get their turns.
    ask(from)
  }
}

/** Chunks that `controller` stops. Reading them then ends. */
type Chunks<Chunk> = AsyncGenerator<Chunk, void, undefined> & { controller: AbortController }

/** Starts a job. Resolves once its first chunk is there, and rejects if none can come. */
async function begin<Whole, Part, Logprobs>(
  model: Answerer, job: Job, form: Form<Whole, Part, Logprobs>, signal: AbortSignal | undefined
): Promise<Chunks<Framed<Part>>> {
  const controller = new AbortController()
  const stop = signal ? AbortSignal.any([signal, controller.signal]) : controller.signal
  const rest = chunks(model, job, form, stop)
  const first = await rest.next()
  const stream = resumed(first, rest, stop)
  // If a generator is returned before it was asked for a chunk, it skips its `finally`.
  const leave = stream.return.bind(stream)
  const end = () => {
    controller.abort()
    return leave()
  }
  return Object.assign(stream, { controller, return: end })
}

async function* resumed<Chunk>(
  first: IteratorResult<Chunk, void>, rest: AsyncGenerator<Chunk, void, undefined>, stop: AbortSignal
): AsyncGenerator<Chunk, void, undefined> {
  try {
    if (!first.done) yield first.value
    yield* rest
  } catch (error) {
    if (!stop.aborted) throw error
  } finally {
    await rest.return()
  }
}

/** Chunks as server-sent events. Cancelling the stream stops the model. */
function events<Chunk>(from: Chunks<Chunk>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const event = (data: string) => encoder.encode(`data: ${data}\n\n`)
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await from.next()
        if (!done) return controller.enqueue(event(JSON.stringify(value)))
        signal.throwIfAborted()
        controller.enqueue(event('[DONE]'))
      } catch (error) {
        if (signal.aborted) return controller.error(signal.reason)
        controller.enqueue(event(JSON.stringify(errorOf(error).body)))
      }
      controller.close()
    },
    cancel() {
      from.controller.abort()
    }
  })
}
