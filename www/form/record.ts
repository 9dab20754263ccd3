// The record: as a form, as JSON, and whether it is valid.
import { byId, create } from '../shared/dom.ts'
import { recordField, type Field } from './fields.ts'
import type { Json, Schema } from './schema.ts'
import { faultsOf } from './validate.ts'

/** Connects the form. */
export function createRecord() {
  const form = byId('record', HTMLFormElement)
  const json = byId('json', HTMLElement)
  const outcome = byId('outcome', HTMLElement)
  const copied = byId('copied', HTMLElement)
  let schema: Schema = true
  let field: Field
  /** Whether there has been an answer or a change, so that a missing part is a fault. */
  let isBegun = false

  /** Shows the record as JSON, and what is not valid in it. */
  function update() {
    const value = field.value()
    json.textContent = value === undefined ? '' : JSON.stringify(value, null, 2)
    copied.textContent = ''
    const faults = isBegun ? faultsOf(value, schema) : []
    field.mark(faults, '')
    outcome.replaceChildren(...(isBegun ? [verdict(faults.length)] : []))
  }

  function edited() {
    isBegun = true
    update()
  }

  form.addEventListener('submit', event => event.preventDefault())
  form.addEventListener('input', edited)
  byId('copy', HTMLButtonElement).addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(json.textContent)
      copied.textContent = 'Copied.'
    } catch {
      getSelection()?.selectAllChildren(json)
      copied.textContent = 'This browser does not let the page copy. The text is selected: copy it with the keyboard.'
    }
  })

  return {
    /** Makes the form anew, with the values that it has. */
    setSchema(now: Schema) {
      const value = isBegun ? field.value() : undefined
      schema = now
      field = recordField(schema, edited)
      field.show(value)
      const group = create('fieldset')
      group.append(field.element)
      form.replaceChildren(group)
      update()
    },
    /** Empties the form. Its fields are the model's until `finish`. */
    begin() {
      isBegun = false
      field.show(undefined)
      update()
      lock(true)
    },
    /** Shows the record as far as it is known. */
    grow(value: Json) {
      field.show(value)
      json.textContent = JSON.stringify(value, null, 2)
    },
    /** Gives the fields to the reader, and says whether the record is valid, if there is any of it. */
    finish(hasBegun: boolean) {
      lock(false)
      isBegun = hasBegun
      update()
    },
    /** Forgets all values. */
    clear() {
      isBegun = false
      field.show(undefined)
      update()
    }
  }

  function lock(isLocked: boolean) {
    form.querySelector('fieldset')!.disabled = isLocked
    // Then screen readers do not read each value as it grows.
    form.ariaBusy = String(isLocked)
  }
}

function verdict(faults: number): HTMLElement {
  if (faults === 0) return create('p', 'valid', 'The record is valid by the schema.')
  return create('p', 'fault', `${faults === 1 ? 'One part' : `${faults} parts`} of the record must be changed to be valid.`)
}
