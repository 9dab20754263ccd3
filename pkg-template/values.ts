// The values that an answer has: JSON, and calls of tools. Fetched when one is first asked for.
import { BitNetError } from './error.js'
import type { Stats, Token, ToolCall } from './types.js'

const WHY = {
  length: 'needs more tokens (`maxTokens`, `context`)',
  abort: 'was stopped',
  'tool-calls': 'has ended with calls of tools, which `toolCalls()` gives'
}

/** The value of an answer. Throws `incomplete` if it has none. */
export function jsonOf<T>(text: string, { finishReason }: Stats): T {
  if (finishReason !== 'stop') {
    throw new BitNetError('incomplete', `the answer is not complete: it ${WHY[finishReason]}`)
  }
  try {
    return JSON.parse(text) as T
  } catch (cause) {
    throw new BitNetError('incomplete', 'the answer is no whole JSON', { cause })
  }
}

/** The calls in the tokens of an answer. Rejects with `incomplete` if one is cut off. */
export async function callsOf(tokens: AsyncIterable<Token> | Iterable<Token>): Promise<ToolCall[]> {
  const calls: { id: string, name: string, text: string, ends: boolean }[] = []
  for await (const { call, text } of tokens) {
    if (!call) continue
    const { index, id = '', name = '', ends = false } = call
    const known = calls[index] ??= { id, name, text: '', ends }
    known.text += text
    known.ends ||= ends
  }
  return calls.map(({ id, name, text, ends }) => {
    if (ends) return { id, name, arguments: JSON.parse(text) as ToolCall['arguments'] }
    throw new BitNetError('incomplete', `the call of ${name} is not complete`)
  })
}
