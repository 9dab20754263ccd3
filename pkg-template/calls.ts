// Puts the parts of calls of tools together.
import { BitNetError } from './error.js'
import type { Token, ToolCall } from './types.js'

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
