// Makes a form from a JSON schema: a field for each part of a record. Texts are shown as texts, never
// as HTML.
import { create } from '../shared/dom.ts'
import { isObject, keywords, pointer, same, type Json, type Schema, type SchemaObject } from './schema.ts'
import { typesOf, type Fault } from './validate.ts'

/** The field of a part of a record, with the fields of all that is within. */
export interface Field {
  element: HTMLElement
  /** The value as it is in the form; undefined if the record does not have this part. */
  value(): Json | undefined
  /** Shows a value. Undefined empties the field. */
  show(value: Json | undefined): void
  /** Shows what is not valid, beside the part at fault. `at` is the JSON pointer of this part. */
  mark(faults: readonly Fault[], at: string): void
}

/** The facts from which a field is made. */
interface Part {
  /** The keywords of its schema. */
  own: SchemaObject
  /** The schema of the whole record. */
  root: Schema
  label: string
  isRequired: boolean
  /** Whether it may be `null`, which an empty field then means. */
  isNullable: boolean
  /** How many fields are around this one. */
  depth: number
  /** How many more fields are made. */
  budget: { left: number }
}

/** Fields that a schema has within itself are made down to this depth. Below, there is JSON. */
const MAX_DEPTH = 8

/** The most fields of a form. The parts after them are JSON. */
const MAX_FIELDS = 2000

/** A text of no more characters fits into one line. */
const ONE_LINE = 80

/** The field of a whole record. `onGrow` is called when the reader has added or removed an item. */
export function recordField(schema: Schema, onGrow: () => void): Field {
  const budget = { left: MAX_FIELDS }
  return makeField(schema, { root: schema, label: 'Record', isRequired: true, depth: 0, budget }, onGrow)
}

function makeField(schema: unknown, place: Omit<Part, 'own' | 'isNullable'>, onGrow: () => void): Field {
  const { own, isNullable } = simplified(schema, place.root)
  const part: Part = { ...place, own, isNullable, label: textOf(own, 'title') ?? place.label }
  const types = typesOf(own) ?? []
  const options = Array.isArray(own.enum) ? own.enum : 'const' in own ? [own.const] : undefined
  if (options) return choiceField(part, options as Json[])
  part.budget.left -= 1
  if (types.length !== 1 || part.depth > MAX_DEPTH || part.budget.left < 0) return jsonField(part)
  switch (types[0]) {
    case 'boolean': return checkField(part)
    case 'integer': case 'number': return numberField(part)
    case 'string': return textField(part)
    case 'array': return isObject(own.items) && !own.prefixItems ? listField(part, onGrow) : jsonField(part)
    case 'object': return groupField(part, onGrow)
    default: return jsonField(part)
  }
}

/** The keywords of a schema without `null`, and whether it allows that. */
function simplified(schema: unknown, root: Schema): Pick<Part, 'own' | 'isNullable'> {
  const own = keywords(schema, root)
  const types = typesOf(own)
  if (types?.includes('null') && types.length === 2) {
    return { own: { ...own, type: types.find(type => type !== 'null') }, isNullable: true }
  }
  const options = Array.isArray(own.anyOf) ? own.anyOf.map(option => keywords(option, root)) : []
  const others = options.filter(option => option.type !== 'null')
  if (options.length === 2 && others.length === 1) {
    const { anyOf: _, ...rest } = own
    return { own: { ...others[0], ...rest }, isNullable: true }
  }
  return { own, isNullable: false }
}

const textOf = (own: SchemaObject, keyword: string): string | undefined => {
  const value = own[keyword]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** `deliver_by` and `deliverBy` as `Deliver by`. */
function inWords(key: string): string {
  const words = key.replace(/[_-]+/g, ' ').replace(/([a-z\d])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`).trim()
  return words === '' ? key : words[0]!.toUpperCase() + words.slice(1)
}

let count = 0
/** An id that no other element has. */
const newId = () => `field-${(count += 1)}`

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

/** A control with its label, its description, and a line for what is not valid. */
function labelled(part: Part, input: Input, isCheck = false) {
  const [id, about] = [newId(), textOf(part.own, 'description')]
  input.id = id
  const fault = create('p', 'fault')
  fault.id = `${id}-fault`
  const label = create('label', '', part.label)
  label.htmlFor = id
  if (!part.isRequired) label.append(' ', create('span', 'optional', 'optional'))
  const element = create('div', 'field')
  const line = create('div', isCheck ? 'check' : 'field')
  line.append(...(isCheck ? [input, label] : [label, input]))
  element.append(line)
  if (about) {
    const text = create('p', 'about', about)
    text.id = `${id}-about`
    element.append(text)
  }
  element.append(fault)
  input.setAttribute('aria-describedby', about ? `${id}-about ${id}-fault` : `${id}-fault`)
  const mark = (faults: readonly Fault[], at: string, more = '') => {
    // Parts further within have no line of their own here.
    const own = faults.filter(fault => fault.at === at || fault.at.startsWith(`${at}/`))
    const said = sentences(own.map(({ at: where, message }) => `${where.slice(at.length)} ${message}`))
    fault.textContent = [more, said].filter(Boolean).join(' ')
    input.ariaInvalid = fault.textContent ? 'true' : 'false'
  }
  return { element, mark }
}

const sentences = (messages: string[]): string =>
  messages.map(message => message.trim()).map(message => `${message[0]!.toUpperCase()}${message.slice(1)}.`).join(' ')

/**
 * A field with one control. Until the reader changes it, its value is the one that was shown, also where
 * the control cannot tell it from another.
 */
function controlField(
  part: Part, input: Input, { write, read, isCheck = false }: {
    write: (value: Json | undefined) => void
    read: () => Json | undefined
    isCheck?: boolean
  }
): Field {
  let held: Json | undefined
  const { element, mark } = labelled(part, input, isCheck)
  input.addEventListener('input', () => (held = read()))
  return {
    element,
    mark,
    value: () => held,
    show(value) {
      held = value
      write(value)
    }
  }
}

/** A field with a text in its control. `empty` is its value where the text is empty and the part needed. */
function typedField(
  part: Part, input: HTMLInputElement | HTMLTextAreaElement, empty: Json | undefined,
  read: (text: string) => Json, write: (value: Json) => string
): Field {
  input.spellcheck = false
  return controlField(part, input, {
    write: value => (input.value = value === undefined || value === null ? '' : write(value)),
    read() {
      if (input.value !== '') return read(input.value)
      return part.isNullable ? null : part.isRequired ? empty : undefined
    }
  })
}

/** A value as a person would write it. */
const plainText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

function textField(part: Part): Field {
  const { maxLength, format, pattern } = part.own
  const isShort = typeof maxLength === 'number' && maxLength <= ONE_LINE
  const isLine = isShort || typeof format === 'string' || typeof pattern === 'string'
  const input = isLine ? create('input') : create('textarea')
  if (input instanceof HTMLTextAreaElement) input.rows = 2
  return typedField(part, input, '', text => text, plainText)
}

const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i

function numberField(part: Part): Field {
  const input = create('input')
  input.inputMode = 'decimal'
  // A text that is no number stays a text, which is then at fault.
  const read = (text: string) => (NUMBER.test(text.trim()) ? Number(text) : text)
  return typedField(part, input, undefined, read, plainText)
}

/** For parts that have no field of their own kind. */
function jsonField(part: Part): Field {
  const input = create('textarea', 'raw')
  input.rows = 3
  const read = (text: string): Json => {
    try {
      return JSON.parse(text) as Json
    } catch {
      return text
    }
  }
  const write = (value: Json) => JSON.stringify(value, null, 2)
  return typedField({ ...part, label: `${part.label}, as JSON` }, input, undefined, read, write)
}

function checkField(part: Part): Field {
  const input = create('input')
  input.type = 'checkbox'
  return controlField(part, input, {
    isCheck: true,
    read: () => input.checked,
    write(value) {
      input.checked = value === true
      // Neither yes nor no: the record does not say it.
      input.indeterminate = typeof value !== 'boolean'
    }
  })
}

function choiceField(part: Part, options: Json[]): Field {
  const input = create('select')
  input.append(new Option('—', ''), ...options.map((option, n) => new Option(plainText(option), String(n))))
  return controlField(part, input, {
    read: () => (input.value === '' ? part.isNullable ? null : undefined : options[Number(input.value)]),
    write(value) {
      const index = options.findIndex(option => same(option, value))
      input.value = index < 0 ? '' : String(index)
    }
  })
}

/** A group of fields, with a line for what is at fault in none of them. */
function grouped({ label, own, isRequired }: Part) {
  const element = create('fieldset')
  const legend = create('legend', '', label)
  if (!isRequired) legend.append(' ', create('span', 'optional', 'optional'))
  const fault = create('p', 'fault')
  fault.id = newId()
  element.setAttribute('aria-describedby', fault.id)
  element.append(legend)
  const about = textOf(own, 'description')
  if (about) element.append(create('p', 'about', about))
  return { element, fault }
}

function groupField(part: Part, onGrow: () => void): Field {
  const { element, fault } = grouped(part)
  const properties = isObject(part.own.properties) ? part.own.properties : {}
  const required = Array.isArray(part.own.required) ? part.own.required : []
  const fields = new Map<string, Field>()
  /** Whether the record has this part, also where it has nothing in it. */
  let isKnown = part.isRequired
  let isNull = false
  const add = (key: string, schema: unknown, isRequired: boolean) => {
    const field = makeField(
      schema, { ...part, label: inWords(key), isRequired, depth: part.depth + 1 }, onGrow
    )
    fields.set(key, field)
    fault.before(field.element)
  }
  element.append(fault)
  for (const [key, schema] of Object.entries(properties)) add(key, schema, required.includes(key))
  element.addEventListener('input', () => {
    isKnown = part.isRequired
    isNull = false
  })
  return {
    element,
    value() {
      const entries = [...fields].map(([key, field]) => [key, field.value()] as const)
      const present = entries.filter(([, value]) => value !== undefined)
      if (present.length > 0) return Object.fromEntries(present) as { [key: string]: Json }
      return isNull ? null : isKnown ? {} : undefined
    },
    show(value) {
      isKnown = part.isRequired || value !== undefined
      isNull = value === null
      const given = isObject(value) ? value : {}
      // Keys that the schema allows without listing them.
      for (const key of Object.keys(given)) if (!fields.has(key)) add(key, true, false)
      for (const [key, field] of fields) {
        const isListed = Object.hasOwn(properties, key)
        if (isListed || Object.hasOwn(given, key)) {
          field.show(Object.hasOwn(given, key) ? given[key] : undefined)
        } else {
          field.element.remove()
          fields.delete(key)
        }
      }
    },
    mark(faults, at) {
      for (const [key, field] of fields) field.mark(faults, pointer(at, key))
      fault.textContent = sentences(
        faults.filter(fault => fault.at === at).map(({ message }) => message)
      )
    }
  }
}

function listField(part: Part, onGrow: () => void): Field {
  const { element, fault } = grouped(part)
  const list = create('ol', 'items')
  const addButton = create('button', '', 'Add')
  addButton.type = 'button'
  addButton.append(create('span', 'visually-hidden', ` to ${part.label}`))
  element.append(list, fault, addButton)
  const fields: Field[] = []
  const most = typeof part.own.maxItems === 'number' ? part.own.maxItems : Infinity
  let isKnown = part.isRequired
  let isNull = false

  function add() {
    const place = { ...part, label: `${fields.length + 1}`, isRequired: true, depth: part.depth + 1 }
    const field = makeField(part.own.items, place, onGrow)
    const removeButton = create('button', '', 'Remove')
    removeButton.type = 'button'
    removeButton.append(create('span', 'visually-hidden', ` ${fields.length + 1} of ${part.label}`))
    removeButton.addEventListener('click', () => remove(fields.indexOf(field)))
    const item = create('li')
    item.append(field.element, removeButton)
    list.append(item)
    fields.push(field)
    return field
  }

  /** Moves the values after it up, so that every field keeps its number. */
  function remove(index: number) {
    const values = fields.map(field => field.value())
    values.splice(index, 1)
    set(values)
    isKnown = part.isRequired || values.length > 0
    addButton.focus()
    onGrow()
  }

  function set(values: (Json | undefined)[]) {
    while (fields.length > values.length) {
      fields.pop()
      list.lastElementChild!.remove()
    }
    for (const [n, value] of values.entries()) (fields[n] ?? add()).show(value)
    addButton.disabled = fields.length >= most
  }

  addButton.addEventListener('click', () => {
    set([...fields.map(field => field.value()), undefined])
    isKnown = true
    isNull = false
    list.lastElementChild!.querySelector<HTMLElement>('input, select, textarea, button')?.focus()
    onGrow()
  })

  return {
    element,
    value() {
      // An item that has no value yet is at fault.
      if (fields.length > 0) return fields.map(field => field.value() as Json)
      return isNull ? null : isKnown ? [] : undefined
    },
    show(value) {
      isKnown = part.isRequired || value !== undefined
      isNull = value === null
      set(Array.isArray(value) ? value : [])
    },
    mark(faults, at) {
      for (const [n, field] of fields.entries()) field.mark(faults, pointer(at, n))
      fault.textContent = sentences(
        faults.filter(fault => fault.at === at).map(({ message }) => message)
      )
    }
  }
}
