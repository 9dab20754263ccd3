// Answers in the AI SDK's form: in parts, and whole.
import type { Call } from './call.js'
import type { CallFinish, CallMetadata, CallUsage, GenerateResult, StreamPart } from './types.js'
import type { Generation } from '../generation.js'
import type { CallPart, Stats } from '../types.js'

/** A block of a text or of reasoning that has begun. */
interface Block {
  kind: 'text' | 'reasoning'
  id: string
}

/** A call that has begun. */
interface Begun {
  id: string
  name: string
  input: string
}

/** Makes parts of tokens. */
class Writer {
  /** Whether a tool was called. */
  called = false
  #answerTool: string | undefined
  #blocks = 0
  #block: Block | undefined
  #calls: Begun[] = []

  constructor(answerTool: string | undefined) {
    this.#answerTool = answerTool
  }

  *said(kind: Block['kind'], text: string): Generator<StreamPart> {
    if (text === '') return
    if (this.#block?.kind !== kind) {
      yield* this.end()
      this.#block = { kind, id: String(this.#blocks++) }
      yield { type: `${kind}-start`, id: this.#block.id }
    }
    yield { type: `${kind}-delta`, id: this.#block.id, delta: text }
  }

  *calls(text: string, { index, id, name, ends }: CallPart): Generator<StreamPart> {
    const isNew = !this.#calls[index]
    const call = this.#calls[index] ??= { id: id ?? '', name: name ?? '', input: '' }
    if (call.name === this.#answerTool) return yield* this.said('text', text)
    this.called = true
    yield* this.end()
    if (isNew) yield { type: 'tool-input-start', id: call.id, toolName: call.name }
    call.input += text
    if (text) yield { type: 'tool-input-delta', id: call.id, delta: text }
    if (!ends) return
    yield { type: 'tool-input-end', id: call.id }
    yield { type: 'tool-call', toolCallId: call.id, toolName: call.name, input: call.input }
  }

  /** Ends the block that has begun. */
  *end(): Generator<StreamPart> {
    if (!this.#block) return
    const { kind, id } = this.#block
    this.#block = undefined
    yield { type: `${kind}-end`, id }
  }
}

/**
 * The parts of an answer, without those before the first token. With `raw`, each token is a part too. A call
 * that is cut off has an input that does not end.
 */
export async function* partsOf(
  generation: Generation, { answerTool }: Call, raw: boolean
): AsyncGenerator<StreamPart, void, undefined> {
  const writer = new Writer(answerTool)
  for await (const token of generation.tokens()) {
    if (raw) yield { type: 'raw', rawValue: token }
    const { text, channel, call } = token
    if (call) yield* writer.calls(text, call)
    else yield* writer.said(channel === 'reasoning' ? 'reasoning' : 'text', text)
  }
  yield* writer.end()
  yield finish(await generation.stats, writer.called)
}

const finish = (stats: Stats, called: boolean): StreamPart & { type: 'finish' } => ({
  type: 'finish',
  usage: usageOf(stats),
  finishReason: reasonOf(stats.finishReason, called),
  providerMetadata: { tritloom: { ...stats } } satisfies CallMetadata
})

function reasonOf(raw: Stats['finishReason'], called: boolean): CallFinish {
  // The answer may have been the arguments of a call.
  if (raw === 'tool-calls') return { unified: called ? raw : 'stop', raw }
  return { unified: raw === 'abort' ? 'other' : raw, raw }
}

const usageOf = ({ promptTokens, reusedTokens, completionTokens, reasoningTokens }: Stats): CallUsage => ({
  inputTokens: {
    total: promptTokens, noCache: promptTokens - reusedTokens, cacheRead: reusedTokens, cacheWrite: undefined
  },
  outputTokens: { total: completionTokens, text: completionTokens - reasoningTokens, reasoning: reasoningTokens }
})

/** The end of an answer that has failed after its first token. */
export const failed: StreamPart = {
  type: 'finish',
  usage: {
    inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: undefined, text: undefined, reasoning: undefined }
  },
  finishReason: { unified: 'error', raw: undefined }
}

type Whole = Pick<GenerateResult, 'content' | 'usage' | 'finishReason' | 'providerMetadata'>

/** The whole answer of its parts. */
export async function whole(parts: AsyncIterable<StreamPart>): Promise<Whole> {
  const content: Whole['content'] = []
  for await (const part of parts) {
    switch (part.type) {
      case 'text-start':
        content.push({ type: 'text', text: '' })
        break
      case 'reasoning-start':
        content.push({ type: 'reasoning', text: '' })
        break
      case 'text-delta':
      case 'reasoning-delta': {
        const block = content.at(-1)
        if (block && 'text' in block) block.text += part.delta
        break
      }
      case 'tool-call':
        content.push(part)
        break
      case 'finish': {
        const { usage, finishReason, providerMetadata } = part
        return { content, usage, finishReason, ...(providerMetadata && { providerMetadata }) }
      }
    }
  }
  throw new Error('an answer has no end')
}
