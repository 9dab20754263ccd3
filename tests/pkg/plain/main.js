import { BitNet } from './node_modules/tritloom/index.js'

const model = await BitNet.load(new URLSearchParams(location.search).get('model'))
const text = await model.generate('Who are you?', { maxTokens: 3 }).text()
const word = await model.generate('Who are you?', { responseFormat: /yes/ }).text()
await model.dispose()
document.body.dataset.result = `${text}, ${word}`
