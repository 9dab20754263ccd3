// The model picker: the bundled model, one from an address, or a file.
import { byId } from '../shared/dom.ts'
import { BUNDLED, type Choice } from '../shared/model/loader.ts'

type From = 'bundled' | 'url' | 'file'

/** Connects the form. `onPick` gets the reader's choice when the button is pressed. */
export function createPicker(onPick: (choice: Choice) => void) {
  const form = byId('picker', HTMLFormElement)
  const url = byId('model-url', HTMLInputElement)
  const file = byId('model-file', HTMLInputElement)

  function from(): From {
    return new FormData(form).get('from') as From
  }

  /** Shows the field for the choice, and makes it required. */
  function update() {
    for (const [name, input] of Object.entries({ url, file })) {
      byId(`${name}-detail`, HTMLElement).hidden = from() !== name
      input.required = from() === name
    }
  }

  function choice(): Choice {
    if (from() === 'url') {
      const address = url.value.trim()
      return { source: address, name: address }
    }
    const picked = file.files?.[0]
    if (from() === 'file' && picked) return { source: picked, name: picked.name }
    return BUNDLED
  }

  /** Chooses an address without loading it. */
  function showAddress(address: string) {
    form.querySelector<HTMLInputElement>('[value="url"]')!.checked = true
    url.value = address
    update()
  }

  form.addEventListener('change', update)
  form.addEventListener('submit', event => {
    event.preventDefault()
    onPick(choice())
  })
  update() // The browser may have restored an earlier choice.

  return { choice, showAddress }
}
