// The models that are stored on this device, whole or in part: loads them, goes on with their downloads, deletes them.
import { BitNet, type StoredModel } from 'tritloom'
import { describeFailure, formatBytes } from 'tritloom/words'
import { byId, create } from '../shared/dom.ts'
import { failureBox, showNotice } from '../shared/notices.ts'
import { say } from './speaker.ts'

/** Connects the list, which is read when it is opened: that may fetch code. `load` loads the model of an address. */
export function createStored(load: (address: string) => void) {
  const box = byId('stored', HTMLDetailsElement)
  const list = byId('stored-models', HTMLElement)
  const none = byId('stored-none', HTMLElement)

  async function show() {
    try {
      const models = await BitNet.cache.list()
      list.replaceChildren(...models.sort((a, b) => b.used - a.used).map(row))
      none.hidden = models.length > 0
      none.textContent = 'No model is stored.'
    } catch {
      list.replaceChildren()
      none.hidden = false
      none.textContent = 'This browser stores no models here. They are downloaded each time.'
    }
  }

  function row({ url, bytes, total, complete }: StoredModel): HTMLElement {
    const name = nameOf(url)
    const item = create('li')
    const size = complete ? formatBytes(bytes) : `${formatBytes(bytes)} of ${total ? formatBytes(total) : 'an unknown size'}`
    const about = create('p', 'stored-model', name)
    about.append(create('small', '', ` ${size}`))
    about.title = url
    item.append(about)
    const buttons = create('div', 'row-buttons')
    buttons.append(named(complete ? 'Load' : 'Resume', name, () => load(url)), deleting(url, name, size))
    item.append(buttons)
    return item
  }

  /** A button that deletes only when it is pressed twice: a download may have taken long. */
  function deleting(url: string, name: string, size: string): HTMLElement {
    let isSure = false
    const button = named('Delete', name, async () => {
      if (!isSure) {
        isSure = true
        button.firstChild!.textContent = `Delete ${size}?`
        return
      }
      try {
        await BitNet.cache.delete(url)
        say(`${name} was deleted.`)
      } catch (error) {
        showNotice('stored', failureBox(`Could not delete ${name}`, describeFailure(error)))
      }
      await show()
    })
    button.addEventListener('blur', () => {
      isSure = false
      button.firstChild!.textContent = 'Delete'
    })
    return button
  }

  /** Shows the list again if it is open. */
  function update() {
    if (box.open) void show()
  }

  box.addEventListener('toggle', update)

  return { update }
}

function named(what: string, name: string, act: () => void): HTMLButtonElement {
  const button = create('button', '', what)
  button.type = 'button'
  button.append(create('span', 'visually-hidden', ` ${name}`))
  button.addEventListener('click', act)
  return button
}

const nameOf = (url: string): string => new URL(url).pathname.split('/').at(-1) || url
