// Leaves out the oldest turns of a conversation that is too long for the context.
import { firstSaid, without } from './said.js'
import type { CountOptions, GenerateOptions, Message } from '../types.js'

/** The part of a model that tells how long a conversation is. */
interface Counting {
  /** The tokens of a conversation with the tools in `options`. */
  count(messages: readonly Message[], options: CountOptions): Promise<number>
  /** The most tokens of prompt and answer together. */
  contextLength: number
}

/** The least share of the context for an answer, unless fewer tokens are wanted. */
const ANSWER_SHARE = 1 / 4
/**
 * If turns have to be left out, the others may fill this share of the context. Then the next turns
 * find room without leaving out more, and the KV cache still has everything before them.
 */
const KEPT_SHARE = 1 / 2

/**
 * For a conversation that ends with a question or the beginning of its answer: the messages that the
 * model sees of it, and how many are left out after the system's. Before, `dropped` were left out.
 */
export async function seen(
  model: Counting, messages: Message[], dropped: number,
  { maxTokens, tools, toolChoice, parallelToolCalls }: GenerateOptions
): Promise<{ messages: Message[], dropped: number }> {
  const { contextLength } = model
  let found = without(messages, dropped)
  const given = Object.entries({ tools, toolChoice, parallelToolCalls }).filter(([, value]) => value !== undefined)
  const options: CountOptions = Object.fromEntries(given)
  let tokens = await model.count(found, options)
  // The crate refuses a wrong `maxTokens`, so no turn is left out because of it.
  const wanted = Number.isInteger(maxTokens) ? Number(maxTokens) : Infinity
  const answer = Math.min(wanted, contextLength * ANSWER_SHARE)
  if (tokens + answer <= contextLength) return { messages: found, dropped }
  for (const [index, { role }] of messages.slice(firstSaid(messages)).entries()) {
    if (role !== 'user' || index <= dropped) continue
    found = without(messages, index)
    tokens = await model.count(found, options)
    // A message that is too long by itself fails. The chat keeps the turns before it.
    if (tokens <= contextLength) dropped = index
    if (tokens <= contextLength * KEPT_SHARE) break
  }
  return { messages: found, dropped }
}
