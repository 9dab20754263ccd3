// Tells the model about a constraint. Fetched when a prompt has one.
import { portableOptions } from '../page/format.js'
import type { Message, ResponseFormat } from '../types.js'

const TOLD = {
  json_schema: 'Answer in JSON that is valid by this JSON schema:',
  regex: 'Answer with a text that this regular expression matches as a whole:'
}

/**
 * The messages with the format in the user's last one, if the model is told about it. Throws `bad-option` for a schema
 * that cannot be written as JSON.
 */
export function tell(messages: readonly Message[], format: ResponseFormat, isTold: boolean): Message[] {
  const { kind, text } = portableOptions({ responseFormat: format }).responseFormat!
  const last = messages.findLastIndex(({ role }) => role === 'user')
  return messages.map((message, n) => isTold && n === last
    ? { ...message, content: `${message.content}\n\n${TOLD[kind as keyof typeof TOLD]}\n${text}` }
    : message)
}
