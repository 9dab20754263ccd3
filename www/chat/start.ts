// Which model the page loads first. A link with a prompt never starts a download by itself.
import { BitNet } from 'tritloom'
import { formatBytes } from 'tritloom/words'
import { create } from '../shared/dom.ts'
import { BUNDLED, type Choice } from '../shared/model/loader.ts'
import { noticeBox, showNotice } from '../shared/notices.ts'
import { readKept } from './kept.ts'

/** The model of the last visit, if it is stored as a whole. */
export async function lastModel(): Promise<Choice | undefined> {
  const last = readKept<Choice>('model')
  if (typeof last?.source !== 'string') return undefined
  return (await isStored(last.source)) ? last : undefined
}

const isStored = async (address: string): Promise<boolean> => {
  const models = await BitNet.cache.list().catch(() => [])
  return models.some(({ url, complete }) => complete && url === address)
}

/** Loads the model if it is stored, and asks otherwise. `load` starts the download. */
export async function askBefore(choice: Choice, load: (choice: Choice) => void) {
  if (choice.source !== BUNDLED.source || (await isStored(BUNDLED.source as string))) return load(choice)
  const bytes = await BitNet.cache.missing(BUNDLED.source as string).catch(() => undefined)
  const size = bytes === undefined ? '' : `, ${formatBytes(bytes)}`
  const box = noticeBox(`This link carries a message. A model has to answer it: load the bundled one${size}, or choose another. `)
  const button = create('button', '', 'Load the bundled model')
  button.type = 'button'
  button.addEventListener('click', () => load(choice))
  box.append(button)
  showNotice('load', box)
}
