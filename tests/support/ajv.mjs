// Reads lines of `[schema, text]`, and says how many texts are JSON that is valid by their schemas, and
// what is wrong with the others.
import { readFileSync } from 'node:fs'
import Ajv7 from 'ajv'
import Ajv2020 from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

const DRAFT_7 = 'http://json-schema.org/draft-07/schema#'

const options = { strict: false, validateSchema: 'log' }
const [draft7, draft2020] = [Ajv7, Ajv2020].map(Ajv => addFormats.default(new Ajv.default(options)))

const lines = readFileSync(0, 'utf8').split('\n').map(line => JSON.parse(line))
const validators = new Map()
let count = 0
for (const [schema, text] of lines) {
  const key = JSON.stringify(schema)
  if (!validators.has(key)) validators.set(key, (schema.$schema === DRAFT_7 ? draft7 : draft2020).compile(schema))
  const validate = validators.get(key)
  let why
  try {
    if (validate(JSON.parse(text))) count += 1
    else why = JSON.stringify(validate.errors)
  } catch (error) {
    why = error.message
  }
  if (why) console.log(`${text} of ${key}: ${why}`)
}
console.log(`${count} valid`)
