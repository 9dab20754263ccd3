// The demo that fills a form from a text, driven as a person would. The model is the bundled one, whose
// records make no sense: these tests are about their form.
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Page } from '@playwright/test'
import { SAMPLES } from '../../www/form/samples.ts'
import type { Json, Schema } from '../../www/form/schema.ts'
import { faultsOf } from '../../www/form/validate.ts'
import { expect, expectAccessible, NARROW, SLOW, test as base, watchErrors, WIDE } from './demos.ts'

const ajv = new Ajv2020({ strict: false })
addFormats(ajv)

/** Few tokens, and a part of every kind. */
const SCHEMA = {
  type: 'object',
  properties: {
    kind: { enum: ['cat', 'dog'] },
    legs: { type: 'integer', minimum: 3, maximum: 4 },
    is_small: { type: 'boolean' },
    home: {
      type: 'object', properties: { town: { type: 'string', maxLength: 4 } }, required: ['town'], additionalProperties: false
    },
    friends: { type: 'array', minItems: 2, maxItems: 3, items: { type: 'string', maxLength: 4 } }
  },
  required: ['kind', 'legs', 'is_small', 'home', 'friends'],
  additionalProperties: false
} as const satisfies Schema

type Animal = { kind: string, legs: number, is_small: boolean, home: { town: string }, friends: string[] }

const fill = (page: Page) => page.getByRole('button', { name: 'Fill the form' })
const stopButton = (page: Page) => page.getByRole('button', { name: 'Stop' })
const schemaField = (page: Page) => page.getByLabel('JSON schema')
const schemaState = (page: Page) => page.locator('#schema-state')
const form = (page: Page) => page.locator('#record')
const outcome = (page: Page) => page.locator('#outcome')
const json = async (page: Page) => JSON.parse(await page.locator('#json').innerText()) as Json

async function write(page: Page, text: string, schema: Schema) {
  await page.getByLabel('Text', { exact: true }).fill(text)
  await schemaField(page).fill(JSON.stringify(schema))
}

/** `demo` is a page that has loaded the model. The tests share it. */
const test = base.extend<{ demo: Page }, { visit: { page: Page, check: () => void } }>({
  visit: [
    async ({ browser }, use, { project }) => {
      const page = await browser.newPage({ baseURL: project.use.baseURL, permissions: ['clipboard-read', 'clipboard-write'] })
      const check = watchErrors(page)
      await page.goto('/form/')
      await expect(fill(page)).toBeEnabled(SLOW)
      await use({ page, check })
      await page.close()
    },
    { scope: 'worker' }
  ],
  demo: async ({ visit: { page, check } }, use) => {
    await page.getByLabel('Sample').selectOption('0')
    await use(page)
    check()
    if (await stopButton(page).isVisible()) await stopButton(page).click()
    await expect(fill(page)).toBeVisible()
  }
})

test('fills the form while the answer grows, and every field can be changed', { tag: '@quick' }, async ({ demo: page }) => {
  await page.setViewportSize(NARROW)
  await write(page, 'Mia has a small dog.', SCHEMA)
  await page.evaluate(() => {
    const seen: string[] = []
    Object.assign(window, { seen })
    const json = document.getElementById('json')!
    new MutationObserver(() => seen.push(json.textContent)).observe(json, { childList: true, subtree: true })
  })
  await fill(page).click()
  await expect(outcome(page)).toHaveText('The record is valid by the schema.', SLOW)
  await expect(page.locator('#figures')).toHaveText(/tokens\/s/)
  const record = await json(page) as Animal
  expect(ajv.validate(SCHEMA, record)).toBe(true)
  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen)
  expect(new Set(seen).size).toBeGreaterThan(4)

  await expect(form(page).getByLabel('Kind').locator('option:checked')).toHaveText(record.kind)
  const legs = form(page).getByLabel('Legs')
  await expect(legs).toHaveValue(String(record.legs))
  await expect(form(page).getByLabel('Is small')).toBeChecked({ checked: record.is_small })
  const home = form(page).getByRole('group', { name: 'Home' })
  await expect(home.getByLabel('Town')).toHaveValue(record.home.town)
  const friends = form(page).getByRole('group', { name: 'Friends' })
  await expect(friends.getByRole('textbox')).toHaveCount(record.friends.length)

  // Errors are beside the field.
  await legs.fill('nine')
  await expect(legs).toHaveAccessibleDescription('Must be a whole number.')
  await legs.fill('9')
  await expect(legs).toHaveAccessibleDescription('Must be at most 4.')
  await expect(legs).toHaveAttribute('aria-invalid', 'true')
  await expect(outcome(page)).toHaveText('One part of the record must be changed to be valid.')
  expect((await json(page) as Animal).legs).toBe(9)
  await legs.fill('4')
  await expect(legs).toHaveAttribute('aria-invalid', 'false')

  while (await friends.getByRole('button', { name: 'Remove' }).count() > 1) {
    await friends.getByRole('button', { name: 'Remove 1 of Friends' }).click()
  }
  await expect(friends).toContainText('Must have at least 2 items.')
  await friends.getByRole('button', { name: 'Add to Friends' }).click()
  await expect(friends.getByRole('textbox').last()).toBeFocused()
  await page.keyboard.type('Zoe')
  await home.getByLabel('Town').fill('Bern')
  await form(page).getByLabel('Kind').selectOption('cat')
  await form(page).getByLabel('Is small').setChecked(!record.is_small)
  await expect(outcome(page)).toHaveText('The record is valid by the schema.')
  const changed = await json(page)
  expect(changed).toEqual({
    kind: 'cat', legs: 4, is_small: !record.is_small, home: { town: 'Bern' }, friends: [record.friends.at(-1), 'Zoe']
  })
  await friends.getByRole('button', { name: 'Add to Friends' }).click()
  await expect(friends.getByRole('button', { name: 'Add to Friends' })).toBeDisabled()
  await friends.getByRole('button', { name: 'Remove 3 of Friends' }).click()

  await page.getByRole('button', { name: 'Copy' }).click()
  await expect(page.locator('#copied')).toHaveText('Copied.')
  expect(JSON.parse(await page.evaluate(() => navigator.clipboard.readText()))).toEqual(changed)

  await page.setViewportSize(WIDE)
  // Another schema keeps the values that it has too.
  await schemaField(page).fill(JSON.stringify({ ...SCHEMA, properties: { ...SCHEMA.properties, legs: { const: 3 } } }))
  await expect(form(page).getByLabel('Kind').locator('option:checked')).toHaveText('cat')
  await expect(form(page).getByLabel('Legs')).toHaveAccessibleDescription('Must be 3.')
})

test('says what is wrong with a schema while it is written, and when it is used', async ({ demo: page }) => {
  await schemaField(page).fill('{"type": "object"')
  await expect(schemaState(page)).toContainText('This is no JSON: ')
  await expect(schemaField(page)).toHaveAttribute('aria-invalid', 'true')
  // One that has itself within itself in many places, down to any depth.
  const within = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map(key => [key, { $ref: '#' }]))
  await schemaField(page).fill(JSON.stringify({ type: 'object', properties: within }))
  await expect(form(page).getByLabel('C, as JSON').first()).toBeVisible()
  await schemaField(page).fill('3')
  await expect(schemaState(page)).toHaveText('A schema is an object, or true or false.')
  await fill(page).click()
  await expect(schemaField(page)).toBeFocused()

  const unsupported = { type: 'object', properties: { 'a/b': { type: 'array', uniqueItems: true } } }
  const said = '`/properties/a~1b/uniqueItems` of the schema is not supported'
  await schemaField(page).fill(JSON.stringify(unsupported))
  await expect(schemaState(page)).toContainText(said, SLOW)
  await schemaField(page).fill('{"type": "boolean"}')
  await expect(schemaState(page)).toHaveText('The model takes this schema.', SLOW)
  await expect(schemaField(page)).toHaveAttribute('aria-invalid', 'false')

  // A schema that was not checked before.
  await schemaField(page).fill(JSON.stringify(unsupported))
  await fill(page).click()
  await expect(schemaState(page)).toContainText(said, SLOW)
  await expect(outcome(page)).toBeEmpty()

  await page.getByLabel('Text', { exact: true }).fill(' ')
  await schemaField(page).fill('true')
  await fill(page).click()
  await expect(page.locator('#text-fault')).toContainText('There is no text.')
})

test('a record that was stopped says what is missing', async ({ demo: page }) => {
  const schema = {
    type: 'object', properties: { name: { type: 'string', minLength: 300 }, age: { type: 'integer' } }, required: ['name', 'age']
  }
  await write(page, 'Who is there?', schema)
  await fill(page).click()
  const name = form(page).getByLabel('Name')
  await expect(name).not.toHaveValue('', SLOW)
  await expect(name).toBeDisabled()
  await expect(stopButton(page)).toBeFocused()
  await page.keyboard.press('Escape')
  await expect(page.locator('#figures')).toHaveText('stopped', SLOW)
  await expect(fill(page)).toBeFocused()
  await expect(form(page).getByLabel('Age')).toHaveAccessibleDescription('Is missing.')
  await expect(name).toHaveAccessibleDescription('Must have at least 300 characters.')
  await expect(outcome(page)).toHaveText('2 parts of the record must be changed to be valid.')

  // One that is too long for the model says what to do.
  await page.getByLabel('Text', { exact: true }).fill('Who is there? '.repeat(400))
  await fill(page).click()
  const alert = page.getByRole('alert')
  await expect(alert.locator('code')).toHaveText('context-full', SLOW)
  await expect(alert).toContainText('Take a shorter text')
})

test('the model takes the schema of each sample', async ({ demo: page }) => {
  for (const { name, text } of SAMPLES) {
    await page.getByLabel('Sample').selectOption(name)
    await expect(page.getByLabel('Text', { exact: true })).toHaveValue(text)
    await expect(schemaState(page)).toHaveText('')
    await schemaField(page).press('Control+End')
    await schemaField(page).press('Space')
    await expect(schemaState(page), name).toHaveText('The model takes this schema.', SLOW)
  }
})

test('can be used without seeing or a mouse, on narrow and wide screens, light and dark', async ({ demo: page }) => {
  await schemaField(page).fill(JSON.stringify({ ...SCHEMA, description: 'An animal', additionalProperties: true }))
  await form(page).getByLabel('Legs').fill('9')
  await expect(outcome(page)).toContainText('must be changed')
  await expectAccessible(page)
})

test('records are valid for the page where they are valid for Ajv', () => {
  const texts = ['', 'a', 'abc', 'b2', '2026-02-29', '2028-02-29', '18:30:00Z', '2026-11-28T18:30:00+01:00', 'a@b.org', 'a@', '1.2.3.4', '1.2.3.256', 'https://a.b/', 'é😀']
  const numbers = [0, -1, 1, 2.5, 3, 0.3, 100]
  const values: Json[] = [
    null, true, false, ...texts, ...numbers, [], ['a'], ['a', 1], [1, 2, 3], {}, { a: 1 }, { a: 'x', b: [1] }, { b: [], c: null }, { a: { a: { a: 1 } } }
  ]
  const schemas: Schema[] = [
    true, false, {}, { type: 'string' }, { type: ['integer', 'null'] }, { type: 'number' }, { type: 'boolean' }, { type: 'array' }, { type: 'object' },
    { enum: ['a', 3, null, ['a', 1], { a: 1 }] }, { const: { b: [], c: null } },
    { minLength: 2 }, { maxLength: 2 }, { pattern: '^[a-z]+$' }, { pattern: '\\d' },
    ...['date', 'time', 'date-time', 'email', 'ipv4', 'uri', 'uuid'].map(format => ({ format })),
    { minimum: 1, maximum: 3 }, { exclusiveMinimum: 0, exclusiveMaximum: 3 }, { multipleOf: 0.5 },
    { minItems: 1, maxItems: 2 }, { items: { type: 'integer' } }, { prefixItems: [{ type: 'string' }], items: false },
    { required: ['a'] }, { properties: { a: { type: 'string' } } }, { properties: { a: true }, additionalProperties: false },
    { additionalProperties: { type: 'array' } }, { patternProperties: { '^a': { type: 'integer' } }, additionalProperties: false }, { minProperties: 1, maxProperties: 1 },
    { allOf: [{ type: 'string' }, { minLength: 2 }] }, { anyOf: [{ type: 'string' }, { type: 'integer', minimum: 1 }] }, { oneOf: [{ type: 'string' }, { minLength: 3 }] },
    { $ref: '#/$defs/a', $defs: { a: { type: 'string', maxLength: 1 } } }, { type: ['object', 'integer'], additionalProperties: { $ref: '#' } }
  ]
  let [valid, all] = [0, 0]
  for (const schema of schemas) {
    const validate = ajv.compile(schema)
    for (const value of values) {
      const isValid = validate(value)
      expect(faultsOf(value, schema).length === 0, `${JSON.stringify(value)} by ${JSON.stringify(schema)}`).toBe(isValid)
      all += 1
      if (isValid) valid += 1
    }
  }
  expect(Math.min(valid, all - valid)).toBeGreaterThan(all / 5)
})

test('faults have pointers and sentences', () => {
  const schema = { type: 'object', properties: { 'a/b': { type: 'array', items: { anyOf: [{ type: 'string', maxLength: 1 }, { type: 'null' }] } }, c: { enum: [1] } }, required: ['c'] }
  expect(faultsOf({ 'a/b': ['x', 'xyz'] }, schema)).toEqual([
    { at: '/c', message: 'is missing' }, { at: '/a~1b/1', message: 'must have at most 1 character' }
  ])
  expect(faultsOf({ c: 2 }, schema)).toEqual([{ at: '/c', message: 'must be one of 1' }])
  // Ajv does not take 0.3 for a multiple of 0.1, because their quotient is rounded.
  expect(faultsOf(0.3, { multipleOf: 0.1 })).toEqual([])
  expect(faultsOf(undefined, schema)).toEqual([{ at: '', message: 'is missing' }])
  // A schema that refers to itself for the same value.
  expect(faultsOf(1, { allOf: [{ $ref: '#' }], minimum: 2 }).length).toBeGreaterThan(0)
  expect(faultsOf(1, { $ref: '#' })).toEqual([{ at: '', message: 'is not allowed' }])
  for (const keyword of ['anyOf', 'oneOf']) {
    expect(faultsOf('a', { [keyword]: [{ $ref: '#' }, { $ref: '#' }], minLength: 2 }).length, keyword).toBeGreaterThan(0)
  }
  // A reference that is no address, and names that every object of JavaScript has.
  expect(faultsOf(1, { $ref: '#/%' })).toEqual([{ at: '', message: 'is not allowed' }])
  expect(faultsOf('a', { format: 'constructor' })).toEqual([])
  expect(faultsOf('a', { type: 'toString' })).toEqual([{ at: '', message: 'must be toString' }])
})
