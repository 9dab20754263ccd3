// The format of answers, and the tools that the model may call.
import type { GenerateOptions, Tool } from 'tritloom'
import { byId } from '../shared/dom.ts'
import { readSchema, readTools } from './by-hand.ts'

const SCHEMA = `{
  "type": "object",
  "properties": { "name": { "type": "string", "maxLength": 20 } },
  "required": ["name"],
  "additionalProperties": false
}`

const TOOLS = `[{
  "name": "weather",
  "description": "The weather in a city",
  "parameters": {
    "type": "object",
    "properties": { "city": { "type": "string", "maxLength": 12 } },
    "required": ["city"],
    "additionalProperties": false
  }
}]`

const CHOICES: Readonly<Record<string, string>> = { auto: 'a tool as it likes', required: 'one at least' }

/** Connects the fields. */
export function createFormat() {
  const format = byId('format', HTMLSelectElement)
  const schema = byId('schema', HTMLTextAreaElement)
  const tools = byId('tools', HTMLTextAreaElement)
  const choice = byId('tool-choice', HTMLSelectElement)
  const fault = byId('format-fault', HTMLElement)

  // As their defaults, they come back when the form is reset.
  schema.defaultValue = SCHEMA
  tools.defaultValue = TOOLS
  offer([])

  /** Offers these tools to call. */
  function offer(names: readonly string[]) {
    const { value } = choice
    const options = [...Object.entries(CHOICES), ...names.map(name => [name, name] as const)]
    choice.replaceChildren(...options.map(([option, name]) => new Option(name, option)))
    choice.value = options.some(([option]) => option === value) ? value : 'auto'
  }

  /** The options as they are written. Throws an error for people. */
  function options(): GenerateOptions {
    switch (format.value) {
      case 'json':
        return { responseFormat: { type: 'json_object' } }
      case 'schema':
        return { responseFormat: { type: 'json_schema', schema: readSchema(schema.value) } }
      case 'tools':
        return calling(readTools(tools.value))
      default:
        return {}
    }
  }

  function calling(tools: Tool[]): GenerateOptions {
    offer(tools.map(({ name }) => name))
    const { value } = choice
    return { tools, toolChoice: value === 'auto' || value === 'required' ? value : { name: value } }
  }

  /** Says what is wrong. Returns undefined if something is. */
  function check(): GenerateOptions | undefined {
    try {
      const read = options()
      tell('')
      return read
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error))
      return undefined
    }
  }

  function tell(text: string) {
    if (fault.textContent !== text) fault.textContent = text
    for (const [field, name] of [[schema, 'schema'], [tools, 'tools']] as const) field.ariaInvalid = String(text !== '' && format.value === name)
  }

  return {
    /** Shows the fields of the chosen format, and what is wrong with them. */
    update() {
      byId('schema-part', HTMLElement).hidden = format.value !== 'schema'
      byId('tools-part', HTMLElement).hidden = format.value !== 'tools'
      check()
    },
    /** The options; undefined after pointing at the field that is wrong. */
    read(): GenerateOptions | undefined {
      const read = check()
      if (read) return read
      const field = format.value === 'schema' ? schema : tools
      field.closest('details')!.open = true
      field.focus()
      return undefined
    }
  }
}
