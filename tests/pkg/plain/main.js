import { BitNet } from './node_modules/tritloom/index.js'

const parameters = new URLSearchParams(location.search)
const model = await BitNet.load(parameters.get('model'), { backend: parameters.get('backend') })
const text = await model.generate('Who are you?', { maxTokens: 3 }).text()
const word = await model.generate('Who are you?', { responseFormat: /yes/ }).text()
await model.dispose()
document.body.dataset.result = `${text}, ${word}`
