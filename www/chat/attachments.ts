// The files that go with the next message: chosen, dropped or pasted.
import { byId, create } from '../shared/dom.ts'
import type { AttachedFile } from './conversation.ts'
import { readText } from './files.ts'

/** Connects the list of files. `onChange` is called when it changes; `tell` says what is wrong with a file. */
export function createAttachments({ onChange, tell }: { onChange: () => void, tell: (text: string) => void }) {
  const list = byId('attached', HTMLElement)
  const field = byId('prompt', HTMLTextAreaElement)
  const input = byId('attach-file', HTMLInputElement)
  const button = byId('attach', HTMLButtonElement)
  let files: AttachedFile[] = []

  function set(now: AttachedFile[]) {
    files = now
    list.replaceChildren(...files.map(row))
    list.hidden = files.length === 0
    onChange()
  }

  function row(file: AttachedFile): HTMLElement {
    const [item, remove] = [create('li', '', file.name), create('button', '', '×')]
    remove.type = 'button'
    remove.ariaLabel = `Remove ${file.name}`
    remove.addEventListener('click', () => {
      set(files.filter(other => other !== file))
      field.focus()
    })
    item.append(remove)
    return item
  }

  async function add(given: Iterable<File>) {
    const faults: string[] = []
    for (const file of given) {
      try {
        set([...files, await readText(file)])
      } catch (error) {
        faults.push(error instanceof Error ? error.message : String(error))
      }
    }
    tell(faults.join(' '))
  }

  button.addEventListener('click', () => input.click())
  input.addEventListener('change', async () => {
    await add([...(input.files ?? [])])
    input.value = ''
    field.focus()
  })
  document.addEventListener('dragover', event => {
    if (event.dataTransfer?.types.includes('Files')) event.preventDefault()
  })
  document.addEventListener('drop', event => {
    if (!event.dataTransfer?.files.length) return
    event.preventDefault()
    void add(event.dataTransfer.files)
  })
  field.addEventListener('paste', event => {
    if (!event.clipboardData?.files.length) return
    event.preventDefault()
    void add(event.clipboardData.files)
  })

  return {
    get files() {
      return files
    },
    set
  }
}
