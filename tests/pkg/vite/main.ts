// An app that knows the package from its README alone. It writes its results into the page.
import { BitNet, BitNetError } from 'tritloom'
import type { GenerateOptions, Stats } from 'tritloom'
import { doesBrowserSupportTritloom, tritloom } from 'tritloom/ai-sdk'
import { configure, LanguageModel } from 'tritloom/built-in-ai'
import type { Availability } from 'tritloom/built-in-ai'

const parameters = new URLSearchParams(location.search)
const url = parameters.get('model')!
const backend = parameters.get('backend') === 'cpu' ? 'cpu' : 'webgpu'
const options: GenerateOptions = { maxTokens: 3 }

try {
  const worker = parameters.get('worker') === 'false' ? false : parameters.get('worker') === 'mine'
    ? new Worker(new URL('./my-worker.ts', import.meta.url), { type: 'module' })
    : true
  const model = await BitNet.load(url, { worker, backend, onProgress: ({ fraction }) => { document.title = `${fraction}` } })
  const generation = model.generate('Who are you?', options)
  let text = ''
  for await (const part of generation) text += part
  const stats: Stats = await generation.stats
  // The code for this is loaded now.
  const messages = [{ role: 'user' as const, content: 'Who are you?' }]
  const { choices } = await model.chat.completions.create({ messages, temperature: 0, max_tokens: 3 })
  const word = await model.generate('Who are you?', { responseFormat: { type: 'regex', pattern: /yes/ } }).text()
  // The package `ai` is not installed here. It would do this.
  const { content } = await tritloom(model).doGenerate({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'Who are you?' }] }], temperature: 0, maxOutputTokens: 3 })
  const heard = content.map(part => 'text' in part ? part.text : '').join('')
  if (!doesBrowserSupportTritloom() || heard !== text) throw new Error(`the AI SDK would get ${heard}`)
  configure({ model, answers: options })
  const state: Availability = await LanguageModel.availability()
  const session = await LanguageModel.create({ samplingMode: 'most-predictable' })
  const said = `${state}: ${await session.prompt('Who are you?')}`
  await model.dispose()
  document.body.dataset.result = `${text} (${stats.completionTokens} tokens), ${choices[0]?.message.content}, ${word}, ${said}`
} catch (error) {
  document.body.dataset.result = error instanceof BitNetError ? `${error.code}: ${error.message}` : String(error)
}
