import { BitNet } from './node_modules/tritloom/index.js'
import { configure, LanguageModel } from './node_modules/tritloom/built-in-ai.js'

const parameters = new URLSearchParams(location.search)
const model = await BitNet.load(parameters.get('model'), { backend: parameters.get('backend') })
const text = await model.generate('Who are you?', { maxTokens: 3 }).text()
const word = await model.generate('Who are you?', { responseFormat: /yes/ }).text()
configure({ model, answers: { maxTokens: 3 } })
const session = await LanguageModel.create({ samplingMode: 'most-predictable' })
const said = await session.prompt('Who are you?')
await model.dispose()
document.body.dataset.result = `${text}, ${word}, ${said}`
