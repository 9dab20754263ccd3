// Schemas and tools that the reader writes. This file knows nothing of the page.
import type { JsonSchema, Tool } from 'tritloom'

/** Reads a JSON schema. Throws an error for people. */
export function readSchema(text: string): JsonSchema {
  const value = parsed(text, 'The schema')
  if (typeof value === 'boolean') return value
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonSchema
  throw new Error('A schema is an object in braces, or true or false. Write one.')
}

/** Reads a list of tools, or a single one. Throws an error for people. */
export function readTools(text: string): Tool[] {
  const value = parsed(text, 'The list of tools')
  const tools = Array.isArray(value) ? value : [value]
  if (tools.length === 0) throw new Error('The list has no tool. Write one with a name.')
  for (const [n, tool] of tools.entries()) {
    if (typeof tool?.name !== 'string' || tool.name === '') throw new Error(`Tool ${n + 1} has no name. Give it one: { "name": "lookup" }.`)
  }
  return tools
}

function parsed(text: string, subject: string): any {
  try {
    return JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`${subject} is no JSON: ${why}. Correct it, or choose “any text”.`)
  }
}
