// A program for Deno, Bun, and Node with a GPU: a golden text from a path, an address and storage, in the thread of the package
// and in this one. It prints what it has found as JSON. Arguments: the package, the model, its address, the back end.
import process from 'node:process'

const [path, model, url, wanted] = process.argv.slice(2)
const { BitNet } = await import(path)

const answer = async (source, options) => {
  const loaded = await BitNet.load(source, { backend: wanted, ...options })
  await loaded.stored
  const text = await loaded.generate('Who are you?', { maxTokens: 40 }).text()
  await loaded.dispose()
  return text
}

const texts = [
  await answer(model), await answer(model, { worker: false }), await answer(url), await answer(url, { cache: 'only' })
]
const format = await BitNet.load(model, { backend: wanted })
const value = await format.generate('Who?', { responseFormat: { type: 'json_schema', schema: { enum: ['a'] } } }).json()
const backend = format.info.backend
await format.dispose()
const stored = (await BitNet.cache.list()).map(({ url, complete }) => [url, complete])
const { whole } = await BitNet.cache.verify(url)
const codes = []
for (const source of ['nowhere.gguf', '']) await BitNet.load(source).catch(({ code }) => codes.push(code))
console.log(JSON.stringify({ texts, value, backend, stored, whole, codes }))
