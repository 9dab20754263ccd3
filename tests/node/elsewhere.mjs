// A program for Deno, Bun, and Node with a GPU: every golden text, and one from a path, an address and storage, in the
// thread of the package and in this one. It prints what it has found as JSON. Arguments: the package, the address of the
// model, the back end.
import process from 'node:process'
import { continuation, GOLDEN, goldens } from './goldens.mjs'

const [path, url, wanted] = process.argv.slice(2)
const { BitNet } = await import(path)

const answer = async (source, options) => {
  const loaded = await BitNet.load(source, { backend: wanted, ...options })
  await loaded.stored
  const text = await loaded.generate('Who are you?', { maxTokens: 40 }).text()
  await loaded.dispose()
  return text
}

const texts = [
  await answer(GOLDEN), await answer(GOLDEN, { worker: false }), await answer(url), await answer(url, { cache: 'only' })
]
const model = await BitNet.load(GOLDEN, { backend: wanted })
const { backend } = model.info
const found = []
for (const golden of goldens) found.push(await continuation(model, golden))
const value = await model.generate('Who?', { responseFormat: { type: 'json_schema', schema: { enum: ['a'] } } }).json()
await model.dispose()
const stored = (await BitNet.cache.list()).map(({ url, complete }) => [url, complete])
const { whole } = await BitNet.cache.verify(url)
const codes = []
for (const source of ['nowhere.gguf', '']) await BitNet.load(source).catch(({ code }) => codes.push(code))
console.log(JSON.stringify({ found, texts, value, backend, stored, whole, codes }))
