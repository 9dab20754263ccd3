// The schema that the reader writes, and what is wrong with it.
import { byId } from '../shared/dom.ts'
import { isSchema, type Schema } from './schema.ts'

/** Milliseconds without a key before a schema is checked. */
const PAUSE = 300

/**
 * Connects the field. `onSchema` gets every schema that is JSON. `check` throws what the model has
 * against one; `describe` says it.
 */
export function createEditor({ onSchema, check, describe }: {
  onSchema: (schema: Schema) => void
  check: (schema: Schema) => Promise<void>
  describe: (error: unknown) => string
}) {
  const field = byId('schema', HTMLTextAreaElement)
  const fault = byId('schema-fault', HTMLElement)
  let timer: ReturnType<typeof setTimeout> | undefined
  /** How often the schema has changed. */
  let version = 0
  /** Whether the reader has changed the schema. */
  let isOwn = false

  /** Says what is wrong, or nothing. */
  function say(text: string) {
    if (fault.textContent !== text) fault.textContent = text
    field.ariaInvalid = text ? 'true' : 'false'
  }

  /** The schema; undefined, after saying why, if the text is none. */
  function read(): Schema | undefined {
    try {
      const value: unknown = JSON.parse(field.value)
      if (isSchema(value)) return value
      say('A schema is an object, or true or false.')
    } catch (error) {
      say(`This is no JSON: ${error instanceof Error ? error.message : error}`)
    }
    return undefined
  }

  async function checkNow(schema: Schema) {
    const mine = version
    let said = ''
    try {
      await check(schema)
    } catch (error) {
      said = describe(error)
    }
    if (mine === version) say(said)
  }

  function changed() {
    version += 1
    isOwn = true
    clearTimeout(timer)
    const schema = read()
    if (schema === undefined) return
    onSchema(schema)
    timer = setTimeout(() => void checkNow(schema), PAUSE)
  }

  field.addEventListener('input', changed)

  return {
    read,
    say,
    focus: () => field.focus(),
    /** There is another model, which may see a schema of the reader in another way. */
    recheck() {
      if (isOwn) changed()
    },
    /** Shows a schema of the page, which is right. */
    write(schema: Schema) {
      version += 1
      isOwn = false
      clearTimeout(timer)
      field.value = JSON.stringify(schema, null, 2)
      say('')
      onSchema(schema)
    }
  }
}
