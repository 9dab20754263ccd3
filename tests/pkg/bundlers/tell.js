import { configure, LanguageModel } from 'tritloom/built-in-ai'

/** Loads the model of the page's address and says a few words; and how many files it stored. */
export async function tell(BitNet) {
  try {
    const address = new URLSearchParams(location.search).get('model')
    // Each back end has a module of its own.
    const other = await BitNet.load(address, { backend: 'cpu' })
    const onCpu = await other.generate('Who are you?', { maxTokens: 3 }).text()
    await other.dispose()
    const model = await BitNet.load(address, { backend: 'webgpu' })
    const text = await model.generate('Who are you?', { maxTokens: 3 }).text()
    // The module of grammars is fetched now.
    const word = await model.generate('Who are you?', { responseFormat: /yes/ }).text()
    configure({ model, answers: { maxTokens: 3 } })
    const said = await (await LanguageModel.create({ samplingMode: 'most-predictable' })).prompt('Who are you?')
    await model.stored
    await model.dispose()
    // Only the worker for files inside the model's worker writes them.
    const root = await navigator.storage.getDirectory()
    let files = 0
    for await (const _ of (await root.getDirectoryHandle('tritloom')).keys()) files += 1
    document.body.dataset.result = `${onCpu}, ${text}, ${word}, ${said}, ${files} file`
  } catch (error) {
    document.body.dataset.result = String(error)
  }
}
