// The messages of the AI SDK as those of this package.
import { unsupported } from './errors.js'
import type { CallWarning, PromptMessage, PromptPart, ToolOutput } from './types.js'
import { badOption } from '../check.js'
import type { Message, ToolCall } from '../types.js'

type Part<Type extends PromptPart['type']> = Extract<PromptPart, { type: Type }>

/** The result of a call that was not allowed, if no reason was given. */
const DENIED = 'The call was not allowed.'

const ROLES: readonly unknown[] = ['system', 'user', 'assistant', 'tool'] satisfies PromptMessage['role'][]

const isParts = (content: unknown): boolean =>
  Array.isArray(content) && content.every(part => typeof part === 'object' && part !== null)

const ONLY_TEXT = 'the models read text alone'

/** The messages of a prompt. Parts that are not used are in `warnings`. */
export function messagesOf(prompt: readonly PromptMessage[], warnings: CallWarning[]): Message[] {
  if (!Array.isArray(prompt)) throw badOption('prompt', 'must be an array')
  return prompt.flatMap((message, index) => {
    const at = `prompt[${index}]`
    if (!ROLES.includes(message?.role)) throw badOption(`${at}.role`, `must be one of ${ROLES.join(', ')}`)
    if (message.role !== 'system' && !isParts(message.content)) {
      throw badOption(`${at}.content`, 'must be an array of parts')
    }
    if (message.role === 'system') return [{ role: message.role, content: message.content }]
    if (message.role === 'user') return [userMessage(message.content, at)]
    if (message.role === 'assistant') return assistantMessages(message.content, at, warnings)
    return results(message.content, at)
  })
}

/** The texts of a user are lines. */
function userMessage(parts: readonly PromptPart[], at: string): Message {
  const texts = parts.map((part, n) => {
    if (part.type === 'text') return part.text
    throw unsupported(`${at}.content[${n}]`, functionality(part), ONLY_TEXT)
  })
  return { role: 'user', content: texts.join('\n') }
}

/** An answer, and the results of calls in it that another provider has run itself. */
function assistantMessages(parts: readonly PromptPart[], at: string, warnings: CallWarning[]): Message[] {
  let content = ''
  const toolCalls: ToolCall[] = []
  for (const [n, part] of parts.entries()) {
    const name = `${at}.content[${n}]`
    if (part.type === 'text') content += part.text
    else if (part.type === 'tool-call') toolCalls.push(callOf(part as Part<'tool-call'>, name))
    else if (part.type === 'file') throw unsupported(name, functionality(part), ONLY_TEXT)
    else if (part.type === 'custom') warnings.push({ type: 'unsupported', feature: 'custom part', details: name })
    // Chat templates leave out the reasoning before earlier answers.
  }
  const answer: Message = { role: 'assistant', content, ...(toolCalls.length > 0 && { toolCalls }) }
  return [answer, ...results(parts, at)]
}

function callOf({ toolCallId, toolName, input }: Part<'tool-call'>, at: string): ToolCall {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw badOption(`${at}.input`, 'must be an object')
  }
  return { id: toolCallId, name: toolName, arguments: input as ToolCall['arguments'] }
}

/** The results among the parts of a message. Approvals need no answer: the SDK acts on them. */
const results = (parts: readonly PromptPart[], at: string): Message[] =>
  parts.flatMap((part, n) => part.type !== 'tool-result' ? [] : [{
    role: 'tool' as const,
    toolCallId: part.toolCallId,
    content: outputText(part.output, `${at}.content[${n}].output`)
  }])

function outputText(output: ToolOutput, at: string): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value
    case 'json':
    case 'error-json':
      return JSON.stringify(output.value)
    case 'execution-denied':
      return output.reason ?? DENIED
    case 'content':
      return output.value.map((part, n) => {
        if (part.type === 'text') return part.text
        throw unsupported(`${at}.value[${n}]`, functionality(part), ONLY_TEXT)
      }).join('\n')
    default:
      throw badOption(`${at}.type`, 'is not known')
  }
}

/** The feature that a part asks for, as the SDK's own providers name it. */
const functionality = (part: { type: string, mediaType?: unknown }): string =>
  typeof part.mediaType === 'string' ? `${part.type} part of type ${part.mediaType}` : `${part.type} part`
