// The package where there is no browser: it can be imported and asked.
import { BitNet } from 'tritloom'

const { available, reason } = await BitNet.availability()
const stored = await BitNet.cache.list()
const { usage } = await BitNet.cache.estimate()
const refused = await BitNet.load('https://example.com/model.gguf').catch(error => error.code)
console.log(JSON.stringify({ available, reason, stored, usage, refused }))
