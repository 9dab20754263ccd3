// Texts to try, each with a schema. Strings have a `maxLength` and lists a `maxItems`, so that every
// answer comes to an end. With the longest, the prompt takes some 520 of the 1024 tokens that the bundled
// model has for prompt and answer.
import type { Schema } from './schema.ts'

/** A text, and what is to be known of it. */
export interface Sample {
  name: string
  text: string
  schema: Schema
}

const text = (maxLength: number) => ({ type: 'string', maxLength })

/** An object that has all of these keys and no others. */
const record = (properties: Record<string, Schema>) => ({
  type: 'object', properties, required: Object.keys(properties), additionalProperties: false
})

export const SAMPLES: readonly Sample[] = [
  {
    name: 'An order by mail',
    text: `From: Ada Lopez <ada@harbour-cafe.example>
Subject: Bread for Friday

Hello,

please bring us 12 loaves of rye bread and 30 rolls on
4 December 2026, to the kitchen door as always.
We pay by invoice.

Thank you,
Ada`,
    schema: record({
      customer: text(30),
      mail: { type: 'string', format: 'email', maxLength: 40 },
      deliver_on: { type: 'string', format: 'date' },
      items: { type: 'array', minItems: 1, maxItems: 4, items: record({ product: text(20), count: { type: 'integer', minimum: 1, maximum: 999 } }) },
      payment: { enum: ['card', 'cash', 'invoice'] }
    })
  },
  {
    name: 'An invitation',
    text: `Dear all,

Mia turns seven! We celebrate in the garden, Lindenweg 4 in
Bern, on Saturday, 5 June 2027, from 3 pm on. Ben, Zoe and
Leo are coming too. Bring your bathing suits. Dogs please
stay at home this time.`,
    schema: record({
      title: text(40),
      date: { type: 'string', format: 'date' },
      begins: { type: 'string', pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$', description: 'Hours and minutes, such as 18:30' },
      where: record({ street: text(30), city: text(20) }),
      guests: { type: 'array', maxItems: 5, items: text(12) },
      dogs_allowed: { type: 'boolean' }
    })
  },
  {
    name: 'A report of a fault',
    text: `Since version 2.4.1 the export stops at page 12, every time.
Open a document of more than twelve pages, choose Export,
then PDF. It waits for some 40 seconds and says "Failed".
We cannot send our invoices until this works!`,
    schema: record({
      summary: text(60),
      severity: { enum: ['low', 'medium', 'high'] },
      version: { type: 'string', pattern: '^[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9]{1,2}$' },
      steps: { type: 'array', maxItems: 4, items: text(40) },
      always: { type: 'boolean', description: 'Whether it happens every time' },
      seconds: { type: ['number', 'null'], minimum: 0, maximum: 3600 }
    })
  }
]
