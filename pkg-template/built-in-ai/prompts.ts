// Turns the prompts of a page into messages of the package.
import { exception } from './errors.js'
import { TYPES } from './expected.js'
import { dictionary, isObject, isSequence, oneOf, text } from './idl.js'
import { callOf, resultOf } from './tool-values.js'
import type { LanguageModelMessageType } from './types.js'
import type { Message } from '../types.js'

const ROLES = ['system', 'user', 'assistant'] as const

/** The roles that calls and results must have. */
const ROLE_OF = { 'tool-call': 'assistant', 'tool-response': 'user' } as const

/**
 * The messages of a prompt. Those without words are left out, as a template has nothing to write for them: there may be
 * none. `expected` are the types of content that the session takes, beside texts. `isFirst` says whether they begin the
 * conversation, as a message of the system must.
 *
 * Throws a `TypeError` for what is no prompt, and a `DOMException`: `NotSupportedError` for content that the session
 * does not take, `SyntaxError` for a `prefix` elsewhere than at the end, `DataError` for values that are no JSON.
 */
export function messagesOf(
  input: unknown, expected: ReadonlySet<LanguageModelMessageType>, isFirst: boolean
): Message[] {
  if (!isSequence(input)) return [{ role: 'user' as const, content: text(input) }].filter(hasWords)
  const given = [...input]
  const messages = given.flatMap((message, n) => {
    const { role: named, content, prefix } = dictionary(message, `message ${n}`)
    const role = oneOf(named, ROLES, `the role of message ${n}`)
    if (prefix && (role !== 'assistant' || n < given.length - 1)) {
      throw exception('SyntaxError', 'only the last message may have `prefix`, in the role of the assistant')
    }
    if (role === 'system' && !(isFirst && n === 0)) {
      throw new TypeError('only the first message of a session may be the system\'s')
    }
    if (content === undefined) throw new TypeError(`message ${n} has no content`)
    const parts = isSequence(content) ? [...content] : [{ type: 'text', value: text(content) }]
    const found = merged(role, parts, expected)
    if (!prefix) return found
    const [begun] = found
    if (begun!.toolCalls) throw new TypeError('a message with `prefix` cannot have tool calls')
    return [{ ...begun!, prefix: true }]
  })
  return messages.filter(hasWords)
}

/** Whether a message says anything. The result of a tool may be empty. */
export const hasWords = ({ role, content, toolCalls }: Message): boolean =>
  role === 'tool' || toolCalls !== undefined || content.trim() !== ''

/** A message of the page as messages of the package: results of tools are messages of their own there. */
function merged(
  role: (typeof ROLES)[number], parts: readonly unknown[], expected: ReadonlySet<LanguageModelMessageType>
): Message[] {
  const calls: NonNullable<Message['toolCalls']>[number][] = []
  const results: Message[] = []
  let content = ''
  let hasText = parts.length === 0
  for (const part of parts) {
    const { type: named, value } = dictionary(part, 'content')
    const type = oneOf(named, TYPES, 'the type of content')
    if (value === undefined) throw new TypeError('content has no value')
    if (type === 'text') {
      if (isObject(value)) throw new TypeError('the value of a text must be a string')
      content += text(value)
      hasText = true
      continue
    }
    if (type !== 'image' && type !== 'audio' && role !== ROLE_OF[type]) {
      throw new TypeError(`content of the type ${type} must have the role ${ROLE_OF[type]}`)
    }
    if (!expected.has(type)) throw exception('NotSupportedError', `the session takes no content of the type ${type}`)
    if (type === 'tool-call') calls.push(callOf(value))
    else results.push({ role: 'tool', ...resultOf(value) })
  }
  const own: Message = { role, content, ...(calls.length > 0 && { toolCalls: calls }) }
  return hasText || calls.length > 0 ? [...results, own] : results
}
