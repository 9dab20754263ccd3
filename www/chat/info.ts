// The panel with the facts of the loaded model.
import type { ModelInfo } from 'tritloom'
import { byId, create } from '../shared/dom.ts'
import { formatBytes, formatCount } from 'tritloom/words'

/** Shows a model's facts, or that no model is loaded. */
export function showInfo(info: ModelInfo | null) {
  const list = byId('info', HTMLElement)
  if (!info) {
    list.replaceChildren(create('dt', '', 'No model is loaded.'))
    return
  }
  list.replaceChildren(
    ...facts(info)
      .filter(([, value]) => value)
      .flatMap(([name, value]) => [create('dt', '', name), create('dd', '', value)])
  )
}

function facts(info: ModelInfo): [string, string][] {
  const threeDigits = { maximumSignificantDigits: 3 }
  const millions = (info.parameters / 1e6).toLocaleString(undefined, threeDigits)
  return [
    ['Name', info.name],
    ['Architecture', info.architecture],
    ['Parameters', `${millions} million`],
    ['Context', `${formatCount(info.contextLength)} tokens`],
    ['Vocabulary', formatCount(info.vocabSize)],
    ['Chat template', info.template ?? 'none'],
    ['Ends answers', info.stopTokens.join(' ')],
    ['File', formatBytes(info.bytes)],
    [info.backend === 'cpu' ? 'In memory' : 'On the GPU', formatBytes(info.gpuBytes)],
    ...(info.streamedLayers ? [['Uploaded again and again', `${info.streamedLayers} layers`] as [string, string]] : []),
    ['Adapter', info.adapter || 'not named by this browser'],
    ['Kernels', info.kernels.join(', ')],
    ...info.notes.map((note): [string, string] => ['Note', note])
  ]
}
