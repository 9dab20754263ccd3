// Answers OpenAI's requests from a loaded model. Fetched at the first request.
import { signalOf } from '../check.js'
import { nameOf, start } from './answerer.js'
import type { Answerer } from './answerer.js'
import { RequestError } from './checks.js'
import { embeddings, readEmbeddingRequest } from './embeddings.js'
import type { Embedder } from './embeddings.js'
import type { Job } from './job.js'
import { readChatRequest, readCompletionRequest } from './request.js'
import {
  CHAT_FORM, COMPLETION_FORM, errorOf, frame, hasLogprob, Offsets, usageOf
} from './response.js'
import type { Form } from './response.js'
import { respond, RESPONSE_WIRE } from './responses.js'
import type { ResponseEvents, ResponseObject } from './responses-types.js'
import { begin, events } from './stream.js'
import type { Chunks, Wire } from './stream.js'
import type {
  ChatCompletion, ChatCompletionChunk, ChatCompletionOptions, ChatCompletionStream, CompletionUsage
} from './types.js'
import type { Stats, Token } from '../types.js'

/** A chunk, or an answer without its usage. */
interface Framed<Choice> extends ReturnType<typeof frame> {
  choices: Choice[]
  usage?: CompletionUsage | null
}

/** `model.chat.completions.create`. */
export async function create(
  model: Answerer, body: unknown, options: ChatCompletionOptions = {}
): Promise<ChatCompletion | ChatCompletionStream> {
  const signal = signalOf(options)
  const job = readChatRequest(body)
  return job.stream
    ? await begin(stop => chunks(model, job, CHAT_FORM, stop), signal) as Chunks<ChatCompletionChunk>
    : await whole(model, job, CHAT_FORM, signal) as ChatCompletion
}

/** `model.responses.create`. */
export async function createResponse(
  model: Answerer, body: unknown, options: ChatCompletionOptions = {}
): Promise<ResponseObject | ResponseEvents> {
  return respond(model, body, signalOf(options))
}

/** `model.fetch`. */
export async function answer(
  model: Answerer & Embedder, input: string | URL | Request, init?: RequestInit
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

async function route(model: Answerer & Embedder, request: Request, signal: AbortSignal): Promise<Response> {
  const { pathname } = new URL(request.url)
  const path = /\/v1(\/.*?)\/?$/.exec(pathname)?.[1] ?? pathname
  const name = /^\/models\/([^/]+)$/.exec(path)?.[1]
  switch (name ? '/models/NAME' : path) {
    case '/chat/completions':
      return complete(model, readChatRequest(await bodyOf(request)), CHAT_FORM, signal)
    case '/completions':
      return complete(model, readCompletionRequest(await bodyOf(request)), COMPLETION_FORM, signal)
    case '/responses': {
      const found = await respond(model, await bodyOf(request), signal)
      return 'controller' in found ? streamed(found, RESPONSE_WIRE, signal) : json(found)
    }
    case '/embeddings':
      return json(await embeddings(model, readEmbeddingRequest(await bodyOf(request)), signal))
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
  return streamed(await begin(stop => chunks(model, job, form, stop), signal), WIRE, signal)
}

const data = (body: object) => `data: ${JSON.stringify(body)}`
const WIRE: Wire<object> = {
  chunk: data, failure: error => data(errorOf(error).body), end: 'data: [DONE]'
}

function streamed<Chunk>(from: Chunks<Chunk>, wire: Wire<Chunk>, signal: AbortSignal): Response {
  const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }
  return new Response(events(from, wire, signal), { headers })
}

const json = (body: object, status = 200, headers: Record<string, string> = {}): Response =>
  Response.json(body, { status, headers })

/** The reason in OpenAI's words. An aborted answer never gets here, because reading it rejects. */
const reasonOf = ({ finishReason }: Stats) => {
  if (finishReason === 'tool-calls') return 'tool_calls'
  return finishReason === 'length' ? 'length' : 'stop'
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
      // A call that is cut off is left out, as `finish_reason` says.
      const calls = stats.finishReason === 'tool-calls' ? await generation.toolCalls() : []
      choices.push(form.whole(index, text, reasonOf(stats), logprobs, calls))
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
    const { text, channel, call } = token
    // OpenAI's interface has no sign that a call is whole.
    if (call && form.call && (call.name || text)) yield form.call(index, text, call)
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
