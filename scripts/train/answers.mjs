// A model's greedy answers to the prompts by which models are judged.
//
//   node scripts/train/answers.mjs model.gguf answers.json
import { readFileSync, writeFileSync } from 'node:fs'
import { inRoot } from '../paths.mjs'

const MAX_TOKENS = { story: 250 }
const MAX_TOKENS_OF_OTHERS = 80

const [path, out] = process.argv.slice(2)
const { BitNet } = await import(inRoot('pkg', 'node', 'index.js'))
const model = await BitNet.load(path, { backend: 'cpu' })
const answers = {}
for (const { id, kind, prompt } of JSON.parse(readFileSync(inRoot('models', 'prompts.json'), 'utf8'))) {
  answers[id] = await model.generate(prompt, { maxTokens: MAX_TOKENS[kind] ?? MAX_TOKENS_OF_OTHERS }).text()
  console.log(`${id}  ${answers[id].slice(0, 100).replaceAll('\n', ' ')}`)
}
await model.dispose()
writeFileSync(out, `${JSON.stringify(answers, null, 1)}\n`)
