// The form in which the reader writes: the field, Send and Stop, and their keys.
import { byId } from '../shared/dom.ts'

/** Connects the form. `send` gets the written text. The Stop button and Esc call `stop`. */
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
    // With an input method, Enter chooses a character, and must not send.
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
    /** Sets whether there is a model that can answer. */
    ready(now: boolean) {
      ready = now
      update()
    },
    /**
     * Sets whether an answer is being generated. Meanwhile the reader may write the next message.
     */
    busy(now: boolean) {
      busy = now
      if (busy) field.value = ''
      update()
      // The button that had the focus is hidden now.
      if (document.activeElement === document.body) (busy ? stopButton : field).focus()
    },
    /** Puts a message back that got no answer, unless the reader has begun another one. */
    giveBack(text: string) {
      if (field.value === '') field.value = text
      update()
    }
  }
}
