// Answers requests for responses. A response comes as events. The last event has the whole response.
import { nameOf, start } from './answerer.js'
import type { Answerer } from './answerer.js'
import { errorOf, hasLogprob, now, usageOf } from './response.js'
import { newId } from '../ids.js'
import { Output } from './responses-output.js'
import type { Unnumbered } from './responses-output.js'
import { EFFORT, readResponseRequest } from './responses-request.js'
import type { ResponseJob } from './responses-request.js'
import { begin } from './stream.js'
import type { Chunks, Wire } from './stream.js'
import type {
  ResponseEvent, ResponseObject, ResponseOutputItem, ResponseUsage
} from './responses-types.js'
import type { Stats } from '../types.js'

/** Answers the body of a request: whole, or in events. */
export async function respond(
  model: Answerer, body: unknown, signal: AbortSignal | undefined
): Promise<ResponseObject | Chunks<ResponseEvent>> {
  const job = readResponseRequest(body)
  if (job.stream) return begin(stop => tell(model, job, stop), signal)
  let whole: ResponseObject
  for await (const event of tell(model, job, signal)) {
    if ('response' in event) whole = event.response
  }
  return whole!
}

/** The name of each event stands before it. A failure is an event too. */
export const RESPONSE_WIRE: Wire<ResponseEvent> = {
  chunk: named,
  failure(error, last) {
    const { code, message, param } = errorOf(error).body.error
    const number = last ? last.sequence_number + 1 : 0
    return named({ type: 'error', code, message, param, sequence_number: number })
  }
}

function named<Event extends { type: string }>(event: Event): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}`
}

/** The events of a response. The first one comes with the first token. */
async function* tell(
  model: Answerer, job: ResponseJob, signal: AbortSignal | undefined
): AsyncGenerator<ResponseEvent, void, undefined> {
  const begun = { id: newId('resp_'), created_at: now(), model: job.model ?? nameOf(model) }
  const response = (status: ResponseObject['status'], output: ResponseOutputItem[], stats?: Stats) =>
    responseOf(job, { ...begun, status, output }, stats)
  const opening = (): Unnumbered[] => [
    { type: 'response.created', response: response('in_progress', []) },
    { type: 'response.in_progress', response: response('in_progress', []) }
  ]
  let count = 0
  const numbered = (events: Unnumbered[]) =>
    events.map(event => ({ ...event, sequence_number: count++ }) as ResponseEvent)
  const output = new Output()
  const { started, leave } = start(model, job, signal, EFFORT)
  const { generation } = started[0]!
  try {
    for await (const token of generation.tokens()) {
      if (count === 0) yield* numbered(opening())
      if (token.text || token.call || hasLogprob(token)) yield* numbered(output.add(token))
    }
    if (count === 0) yield* numbered(opening())
    const stats = await generation.stats
    const { finishReason } = stats
    const status = finishReason === 'length' || output.isCalling ? 'incomplete' : 'completed'
    // A completed response has an answer, which may be empty, unless it ended with calls. One that was cut off in
    // its reasoning has none.
    const isAnswered = status === 'completed' && finishReason !== 'tool-calls'
    if (isAnswered || output.isEmpty) yield* numbered(output.begin('answer'))
    yield* numbered(output.end(status))
    const type = `response.${status}` as const
    yield* numbered([{ type, response: response(status, output.items, stats) }])
  } finally {
    leave()
  }
}

/** The fields of a response that come neither from its request nor from its usage. */
type Known = Pick<ResponseObject, 'id' | 'created_at' | 'model' | 'status' | 'output'>

const responseOf = (job: ResponseJob, known: Known, stats: Stats | undefined): ResponseObject => ({
  object: 'response',
  ...known,
  output_text: known.output.flatMap(item => item.type === 'message' ? item.content : [])
    .map(({ text }) => text).join(''),
  incomplete_details: stats?.finishReason === 'length' ? { reason: 'max_output_tokens' } : null,
  ...(stats && { usage: usage(stats) }),
  ...job.repeated,
  access_programs: null,
  background: false,
  error: null,
  previous_response_id: null,
  store: false,
  truncation: 'disabled'
})

/** The statistics in the words of responses. Nothing has to be paid to write the cache. */
function usage(stats: Stats): ResponseUsage {
  const found = usageOf([stats], 1)
  return {
    input_tokens: found.prompt_tokens,
    input_tokens_details: { ...found.prompt_tokens_details, cache_write_tokens: 0 },
    output_tokens: found.completion_tokens,
    output_tokens_details: found.completion_tokens_details,
    total_tokens: found.total_tokens
  }
}
