// The field for the JSON schema. It says why a schema cannot be used.
import { byId } from '../shared/dom.ts'
import { isSchema, type Schema } from './schema.ts'

/** Milliseconds without a key before a schema is checked. */
const PAUSE = 300

/**
 * Connects the field. `onSchema` gets every schema that is JSON. `check` throws what the model has
 * against one, which `describe` says, and gives whether it could check it.
 */
export function createEditor({ onSchema, check, describe }: {
  onSchema: (schema: Schema) => void
  check: (schema: Schema) => Promise<boolean>
  describe: (error: unknown) => string
}) {
  const field = byId('schema', HTMLTextAreaElement)
  const state = byId('schema-state', HTMLElement)
  let timer: ReturnType<typeof setTimeout> | undefined
  /** How often the schema has changed. */
  let version = 0
  /** Whether the reader has changed the schema. */
  let isOwn = false

  /** Says what is wrong, or nothing. */
  function say(fault: string) {
    show(fault, 'fault')
    field.ariaInvalid = fault ? 'true' : 'false'
  }

  function show(text: string, kind: 'fault' | 'valid') {
    state.className = kind
    if (state.textContent !== text) state.textContent = text
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
    let [isChecked, fault] = [false, '']
    try {
      isChecked = await check(schema)
    } catch (error) {
      fault = describe(error)
    }
    if (mine !== version) return
    say(fault)
    if (isChecked) show('The model takes this schema.', 'valid')
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
