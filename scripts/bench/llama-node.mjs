// Times node-llama-cpp, in a process of its own: `node llama-node.mjs JSON`. Prints what `rates` gives.
//
// `library` is its script, `model` a file; the others are those of `rates`.
import { pathToFileURL } from 'node:url'
import { ids, rates } from './rates.mjs'

const { library, model: modelPath, threads, context: contextSize, ...how } = JSON.parse(process.argv[2])
const { getLlama } = await import(pathToFileURL(library).href)

// Its own messages go to standard output otherwise.
const llama = await getLlama({ gpu: false, build: 'never', maxThreads: threads, logger: (_, text) => console.error(text) })
const model = await llama.loadModel({ modelPath, gpuLayers: 0 })
const context = await model.createContext({ contextSize, threads, sequences: 1 })
const sequence = context.getSequence()

const answer = (prompt, maxTokens) => {
  const tokens = (async function* () {
    // Nothing of the answer before is used again.
    await sequence.clearHistory()
    let made = 0
    for await (const _ of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
      yield ++made
      if (made === maxTokens) return
    }
  })()
  return { tokens, stop: () => {} }
}
const vocabSize = model.fileInfo.metadata.tokenizer.ggml.tokens.length
const found = await rates(answer, ids(vocabSize), how)
// The process may go on computing: its caller ends it once the output has ended.
process.stdout.end(JSON.stringify({ found, threads }))
