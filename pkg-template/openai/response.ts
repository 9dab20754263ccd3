// Puts a generation's results into OpenAI's form: whole, in chunks, or as an error.
import { BitNetError } from '../error.js'
import { newId } from '../ids.js'
import { RequestError } from './checks.js'
import type {
  ChatCompletionChoice, ChatCompletionChunkChoice, ChatCompletionToolCall, ChatLogprobs, CompletionChoice,
  CompletionLogprobs, CompletionUsage, FinishReason
} from './types.js'
import type { CallPart, ErrorCode, Stats, Token, ToolCall } from '../types.js'

/**
 * The form of the answers to one kind of request. `Whole` and `Part` are its choices, whole and in
 * chunks. `Logprobs` is the form of log-probabilities.
 */
export interface Form<Whole, Part, Logprobs> {
  /** The prefix of ids. */
  id: string
  /** The object's name, whole and as a chunk. */
  object: string
  chunk: string
  whole(
    index: number, text: string, reason: FinishReason, logprobs: Logprobs | null, calls: readonly ToolCall[]
  ): Whole
  /** The part that comes before the first text of a choice, if there is one. */
  begin(index: number): Part | undefined
  text(index: number, text: string, logprobs: Logprobs | null): Part
  /** A part of a call of a tool. `text` is some of its arguments. */
  call?(index: number, text: string, call: CallPart): Part
  end(index: number, reason: FinishReason): Part
  /** The log-probabilities of tokens. `offsets` finds their positions in the answer. */
  logprobs(tokens: readonly Token[], offsets: Offsets): Logprobs
}

/**
 * Finds where the tokens of an answer begin, in characters. If a character takes several tokens,
 * all of them begin where it does.
 */
export class Offsets {
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #at = 0

  /** Where the next token begins. */
  next({ bytes = [] }: Token): number {
    const begins = this.#at
    this.#at += this.#decoder.decode(Uint8Array.from(bytes), { stream: true }).length
    return begins
  }
}

/** Whether OpenAI's interface gives the token's probability. It does not for reasoning. */
export const hasLogprob = ({ channel, logprob }: Token) =>
  channel === 'answer' && logprob !== undefined

/** A token's own text. If the token has only a part of a character, its text is U+FFFD. */
export const ownText = ({ bytes = [] }: Token): string =>
  new TextDecoder().decode(Uint8Array.from(bytes))

/** The bytes of a text, or none if they are not known. */
const bytesOf = (text: string): number[] | null =>
  text.includes('\ufffd') ? null : [...new TextEncoder().encode(text)]

const part = (
  index: number, delta: ChatCompletionChunkChoice['delta'], reason: FinishReason | null = null,
  logprobs: ChatLogprobs | null = null
): ChatCompletionChunkChoice => ({ index, delta, logprobs, finish_reason: reason })

const calling = ({ id, name, arguments: args }: ToolCall): ChatCompletionToolCall =>
  ({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } })

/** The answers of `/v1/chat/completions`. */
export const CHAT_FORM: Form<ChatCompletionChoice, ChatCompletionChunkChoice, ChatLogprobs> = {
  id: 'chatcmpl',
  object: 'chat.completion',
  chunk: 'chat.completion.chunk',
  whole: (index, content, reason, logprobs, calls) => {
    // Calls need no text before them.
    const said = { role: 'assistant' as const, content: calls.length > 0 ? content || null : content, refusal: null }
    const message = calls.length > 0 ? { ...said, tool_calls: calls.map(calling) } : said
    return { index, message, logprobs, finish_reason: reason }
  },
  begin: index => part(index, { role: 'assistant', content: '', refusal: null }),
  text: (index, content, logprobs) => part(index, { content }, null, logprobs),
  call: (index, text, { index: number, id, name }) => {
    const call = name === undefined
      ? { index: number, function: { arguments: text } }
      : { index: number, id: id!, type: 'function' as const, function: { name, arguments: text } }
    return part(index, { tool_calls: [call] })
  },
  end: (index, reason) => part(index, {}, reason),
  logprobs: tokens => ({
    content: tokens.map(token => ({
      token: ownText(token),
      bytes: token.bytes ?? null,
      logprob: token.logprob ?? 0,
      top_logprobs: (token.top ?? []).map(({ text, logprob }) =>
        ({ token: text, bytes: bytesOf(text), logprob }))
    })),
    refusal: null
  })
}

const choice = (
  index: number, text: string, reason: FinishReason | null, logprobs: CompletionLogprobs | null
): CompletionChoice => ({ index, text, logprobs, finish_reason: reason })

/** The answers of `/v1/completions`. */
export const COMPLETION_FORM: Form<CompletionChoice, CompletionChoice, CompletionLogprobs> = {
  id: 'cmpl',
  object: 'text_completion',
  chunk: 'text_completion',
  whole: choice,
  begin: () => undefined,
  text: (index, text, logprobs) => choice(index, text, null, logprobs),
  end: (index, reason) => choice(index, '', reason, null),
  logprobs: (tokens, offsets) => ({
    tokens: tokens.map(ownText),
    token_logprobs: tokens.map(({ logprob = 0 }) => logprob),
    top_logprobs: tokens.map(token => Object.fromEntries([
      [ownText(token), token.logprob ?? 0],
      ...(token.top ?? []).map(({ text, logprob }) => [text, logprob])
    ])),
    text_offset: tokens.map(token => offsets.next(token))
  })
}

/** The time in seconds since 1970. */
export const now = () => Math.floor(Date.now() / 1000)

/** The fields that an answer and each of its chunks begin with. */
export const frame = (id: string, object: string, model: string) => ({
  id: newId(`${id}-`),
  object,
  created: now(),
  model
})

/** The statistics of several choices as one. A prompt with several choices counts once. */
export function usageOf(stats: readonly Stats[], n: number): CompletionUsage {
  const prompts = stats.filter((_, index) => index % n === 0)
  const prompt = sum(prompts, ({ promptTokens }) => promptTokens)
  const completion = sum(stats, ({ completionTokens }) => completionTokens)
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum(prompts, ({ reusedTokens }) => reusedTokens) },
    completion_tokens_details: { reasoning_tokens: sum(stats, ({ reasoningTokens }) => reasoningTokens) }
  }
}

const sum = (stats: readonly Stats[], field: (stats: Stats) => number): number =>
  stats.reduce((total, one) => total + field(one), 0)

/** The body of an error, as OpenAI's servers send it. */
export interface ErrorBody {
  error: { message: string, type: string, param: string | null, code: string | null }
}

/** The statuses of failures, if they are not 500. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  'bad-option': 400,
  'context-full': 400,
  'embedding-model': 400,
  // The next call opens a new device. So it is worth trying again, and clients do so with this
  // status.
  'device-lost': 503
}

/** The status and the body for anything that was thrown. */
export function errorOf(error: unknown): { status: number, body: ErrorBody } {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof RequestError) {
    const { status, kind, param } = error
    return { status, body: errorBody(message, 'invalid_request_error', param, kind) }
  }
  const code = error instanceof BitNetError ? error.code : 'internal'
  const status = STATUS[code] ?? 500
  const type = status === 400 ? 'invalid_request_error' : 'server_error'
  const name = code === 'context-full' ? 'context_length_exceeded' : code
  return { status, body: errorBody(message, type, null, name) }
}

const errorBody = (
  message: string, type: string, param: string | null, code: string | null
): ErrorBody => ({ error: { message, type, param, code } })
