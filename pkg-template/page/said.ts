// Parts and copies of a conversation's messages.
import { badOption } from '../check.js'
import type { Message } from '../types.js'

/** The index of the first message that is not of the system. */
export function firstSaid(messages: readonly Message[]): number {
  const first = messages.findIndex(({ role }) => role !== 'system')
  return first < 0 ? messages.length : first
}

/** The messages, without the first `dropped` after the system's. */
export function without(messages: readonly Message[], dropped: number): Message[] {
  const first = firstSaid(messages)
  return [...messages.slice(0, first), ...messages.slice(first + dropped)]
}

/** Copies of messages, with only what belongs to them, as JSON has it. Throws `bad-option`. */
export const copies = (messages: readonly Message[]): Message[] =>
  messages.map(({ role, content, toolCalls, toolCallId }, n) => {
    try {
      return JSON.parse(JSON.stringify({ role, content, toolCalls, toolCallId }))
    } catch {
      throw badOption(`messages[${n}].toolCalls`, 'must be JSON')
    }
  })
