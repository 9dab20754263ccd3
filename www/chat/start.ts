// Which model the page loads first. A link with a prompt never starts a download by itself.
import { BitNet } from 'tritloom'
import { formatBytes } from 'tritloom/words'
import { create } from '../shared/dom.ts'
import { BUNDLED, type Choice } from '../shared/model/loader.ts'
import { FAMILIES, fileOf } from '../shared/model/models.ts'
import { noticeBox, showNotice } from '../shared/notices.ts'
import { keep, readKept } from './kept.ts'

/** Notes the model in use for the next visit. A file of the reader cannot be opened again without them. */
export function keepModel({ source, name }: Choice) {
  if (typeof source === 'string') keep('model', { source, name })
}

/** The model of the last visit, if it is stored as a whole; undefined also for the bundled one, which is the default. */
export async function lastModel(): Promise<Choice | undefined> {
  const last = readKept<Choice>('model')
  return typeof last?.source === 'string' && last.source !== BUNDLED.source && (await isStored(last.source)) ? last : undefined
}

const isStored = async (address: string): Promise<boolean> => {
  const models = await BitNet.cache.list().catch(() => [])
  return models.some(({ url, complete }) => complete && url === address)
}

/** Loads the bundled model if it is stored, and asks otherwise. */
export async function askBefore(load: (choice: Choice) => void) {
  // Whoever has loaded no model here has stored none. To look would fetch code.
  if (readKept('model') !== undefined && (await isStored(BUNDLED.source as string))) return load(BUNDLED)
  const [bundled] = FAMILIES.flatMap(({ models }) => models).filter(model => fileOf(model) === BUNDLED.source)
  const size = formatBytes(bundled!.bytes)
  const box = noticeBox(`This link carries a message. A model has to answer it: load the bundled one, ${size}, or choose another. `)
  const button = create('button', '', 'Load the bundled model')
  button.type = 'button'
  button.addEventListener('click', () => load(BUNDLED))
  box.append(button)
  showNotice('load', box)
}
