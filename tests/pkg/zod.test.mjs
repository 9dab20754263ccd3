// Schemas of zod and valibot as formats of answers, with those that are installed: what they print, and which
// answers they then allow. An answer that a grammar takes is one that they parse.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { z } from 'zod'
import { fits, made } from './grammars.mjs'

const { portableOptions } = await import('../../pkg/page/format.js')
const formats = await made()

const kinds = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('circle'), radius: z.number().positive() }),
  z.strictObject({ kind: z.literal('square'), side: z.int().min(1).max(9) })
])
const person = z.strictObject({ name: z.string().min(1), nick: z.string().optional(), age: z.int().nullable(), note: z.string().nullish() })
const tree = z.strictObject({ value: z.int(), get next() { return tree.nullable() } })

/** A schema of valibot, with what the tests ask of one of zod. */
const valibot = schema =>
  Object.assign(toStandardJsonSchema(schema), { safeParse: value => v.safeParse(schema, value) })
const pet = v.strictObject({ kind: v.picklist(['cat', 'dog']), legs: v.pipe(v.number(), v.integer(), v.maxValue(4)), name: v.optional(v.nullable(v.string())) })

for (const [name, schema, right, wrong] of [
  ['email', z.email(), ['a.b@example.org', "o'neil+x@a-b.example.org"], ['a..b@example.org', '.a@b.org', 'a@b', 'a b@c.org']],
  ['url', z.url(), ['https://example.org/a?b=c#d', 'mailto:a@b.org'], ['example', 'https://a b.org']],
  ['uuid', z.uuid(), ['123e4567-e89b-12d3-a456-426614174000'], ['123e4567-e89b-02d3-a456-426614174000', '123']],
  ['guid', z.guid(), ['123e4567-e89b-02d3-0456-426614174000'], ['123']],
  ['iso.datetime', z.iso.datetime(), ['2024-02-29T10:00:00Z', '2024-02-28T10:00:00.123Z'], ['2023-02-29T10:00:00Z', '2024-02-28T10:00:00+01:00', '2024-02-28']],
  ['iso.datetime with an offset', z.iso.datetime({ offset: true }), ['2024-02-28T10:00:00+01:00'], ['2024-02-28T10:00:00+25:00']],
  ['iso.date', z.iso.date(), ['2024-02-29'], ['2023-02-29']],
  ['iso.time', z.iso.time(), ['10:00:00', '10:00'], ['24:00']],
  ['ipv4', z.ipv4(), ['127.0.0.1'], ['256.0.0.1']],
  ['cuid2', z.cuid2(), ['tz4a98xxat96iws9zmbrgj3a'], ['A']],
  ['lowercase', z.string().lowercase().max(3), ['abc'], ['A', 'abcd']],
  ['startsWith', z.string().startsWith('a').endsWith('b'), ['ab', 'axb'], ['a', 'b']],
  ['discriminatedUnion', kinds, [{ kind: 'circle', radius: 1.5 }, { kind: 'square', side: 3 }], [{ kind: 'square', radius: 1.5 }, { kind: 'circle', radius: 0 }, { kind: 'square', side: 10 }]],
  ['optional, nullable and nullish', person, [{ name: 'a', age: null }, { name: 'a', nick: 'b', age: 3, note: null }, { name: 'a', age: 3, note: 'n' }], [{ name: 'a' }, { name: '', age: 3 }, { name: 'a', nick: null, age: 3 }]],
  ['record', z.record(z.string(), z.int()), [{}, { a: 1, 'b c': -2 }], [{ a: 1.5 }, []]],
  ['tuple', z.tuple([z.string(), z.boolean()]), [['a', true]], [['a'], ['a', true, 1]]],
  ['enum, literal and union', z.union([z.enum(['a', 'b']), z.literal([1, null])]), ['a', 1, null], ['c', 2]],
  ['an object of valibot', valibot(pet), [{ kind: 'cat', legs: 4 }, { kind: 'dog', legs: -3, name: null }, { kind: 'dog', legs: 3, name: 'a' }], [{ kind: 'cow', legs: 4 }, { kind: 'cat', legs: 5 }, { kind: 'cat', legs: 4, size: 1 }]],
  ['a union of valibot', valibot(v.union([v.pipe(v.string(), v.email()), v.array(v.boolean())])), ['a.b@example.org', [true]], ['a@b', [1]]],
  ['a schema that refers to itself', tree, [{ value: 1, next: { value: 2, next: null } }], [{ value: 1 }]]
]) {
  test(`${name} is understood`, () => {
    const { grammar, release } = formats.hold(portableOptions({ responseFormat: { type: 'json_schema', schema } }).responseFormat)
    for (const value of right) {
      assert.ok(schema.safeParse(value).success, JSON.stringify(value))
      assert.ok(fits(grammar, JSON.stringify(value)), JSON.stringify(value))
    }
    for (const value of wrong) {
      assert.ok(!schema.safeParse(value).success, JSON.stringify(value))
      assert.ok(!fits(grammar, JSON.stringify(value)), JSON.stringify(value))
    }
    release()
  })
}
