// The options `expectedInputs` and `expectedOutputs`.
import { dictionary, languageTags, oneOf, sequence } from './idl.js'
import type { LanguageModelMessageType } from './types.js'

export const TYPES = ['text', 'image', 'audio', 'tool-call', 'tool-response'] as const

/** The types and languages of content that a session is to take or to give. */
export function readExpected(given: unknown, what: string) {
  const types = new Set<LanguageModelMessageType>()
  const languages: string[] = []
  for (const one of given === undefined ? [] : sequence(given, what)) {
    const { type, languages: tags } = dictionary(one, what)
    types.add(oneOf(type, TYPES, `the type of ${what}`))
    if (tags !== undefined) languages.push(...languageTags(tags, `the languages of ${what}`))
  }
  return { types, languages }
}
