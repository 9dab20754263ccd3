// The logits of a model file, as the package computes them on the CPU.
//
//   node logits.mjs model.gguf ids.json logits.f32 [adapter.gguf]
//
// `ids.json` is a list of lists of token ids. The result has the logits after the last token of each, as f32.
import { readFileSync, writeFileSync } from 'node:fs'
import { BitNet } from '../../pkg/node/index.js'

const [path, ids, out, adapter] = process.argv.slice(2)
const adapters = adapter ? [{ source: adapter }] : []
const model = await BitNet.load(path, { backend: 'cpu', adapters })
const rows = []
for (const list of JSON.parse(readFileSync(ids, 'utf8'))) {
  const logits = await model.logits(Uint32Array.from(list))
  rows.push(Buffer.from(logits.buffer, logits.byteOffset, logits.byteLength))
}
await model.dispose()
writeFileSync(out, Buffer.concat(rows))
