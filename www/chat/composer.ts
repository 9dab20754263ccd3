// Where the reader writes: the field, Send and Stop, and their keys.
import { byId } from '../shared/dom.ts'

/** Connects the form. `send` gets what was written; `stop` is asked for by the button or Esc. */
export function createComposer({ send, stop }: { send(text: string): void; stop(): void }) {
  const form = byId('composer', HTMLFormElement)
  const field = byId('prompt', HTMLTextAreaElement)
  const sendButton = byId('send', HTMLButtonElement)
  const stopButton = byId('stop', HTMLButtonElement)
  let ready = false
  let busy = false

  function update() {
    sendButton.hidden = busy
    stopButton.hidden = !busy
    sendButton.disabled = !ready || field.value.trim() === ''
  }

  function write(text: string) {
    field.value = text
    field.focus()
    update()
  }

  form.addEventListener('submit', event => {
    event.preventDefault()
    if (sendButton.disabled || busy) return
    send(field.value.trim())
  })
  field.addEventListener('input', update)
  field.addEventListener('keydown', event => {
    // Enter may also end the choice of a character in an input method; that is no sending.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    form.requestSubmit()
  })
  document.addEventListener('keydown', event => {
    if (event.key === 'Escape' && busy) stop()
  })
  stopButton.addEventListener('click', stop)
  update()

  return {
    write,
    focus: () => field.focus(),
    /** Whether there is a model to send to. */
    ready(now: boolean) {
      ready = now
      update()
    },
    /** Whether an answer is being written. Writing on in the field is allowed meanwhile. */
    busy(now: boolean) {
      busy = now
      if (busy) field.value = ''
      update()
      // The button that had the focus is gone.
      if (document.activeElement === document.body) (busy ? stopButton : field).focus()
    },
    /** Puts back a message that got no answer, unless the reader has begun another. */
    giveBack(text: string) {
      if (field.value === '') field.value = text
    }
  }
}
