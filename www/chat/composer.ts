// The form in which the reader writes: the field, its files, Send and Stop, and their keys.
import { copy } from '../shared/copy.ts'
import { byId } from '../shared/dom.ts'
import { sendOnEnter } from '../shared/keys.ts'
import { createAttachments } from './attachments.ts'
import type { AttachedFile } from './conversation.ts'
import { linkTo } from './link.ts'
import { say } from './speaker.ts'

interface Uses {
  send(text: string, files: AttachedFile[]): void
  stop(): void
  /** The address of the model that a link offers; undefined for none. */
  linkedModel(): string | undefined
}

/** Connects the form. `send` gets what was written. The Stop button and Esc call `stop`. */
export function createComposer({ send, stop, linkedModel }: Uses) {
  const form = byId('composer', HTMLFormElement)
  const field = byId('prompt', HTMLTextAreaElement)
  const sendButton = byId('send', HTMLButtonElement)
  const stopButton = byId('stop', HTMLButtonElement)
  const linkButton = byId('copy-link', HTMLButtonElement)
  const note = byId('composer-note', HTMLElement)
  let ready = false
  let busy = false

  const tell = (text: string) => (note.textContent = text)
  const attachments = createAttachments({ onChange: update, tell })

  function update() {
    sendButton.hidden = busy
    stopButton.hidden = !busy
    const isEmpty = field.value.trim() === ''
    sendButton.disabled = !ready || (isEmpty && attachments.files.length === 0)
    linkButton.disabled = isEmpty
  }

  function write(text: string) {
    field.value = text
    field.focus()
    update()
  }

  form.addEventListener('submit', event => {
    event.preventDefault()
    if (sendButton.disabled || busy) return
    tell('')
    send(field.value.trim(), attachments.files)
  })
  field.addEventListener('input', update)
  sendOnEnter(field, form)
  document.addEventListener('keydown', event => {
    if (event.key === 'Escape' && busy) stop()
  })
  stopButton.addEventListener('click', stop)
  linkButton.addEventListener('click', () => {
    try {
      void copy(linkTo(location.href, field.value.trim(), linkedModel()), linkButton, say)
      tell('')
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error))
    }
  })
  update()

  return {
    write,
    focus: () => field.focus(),
    /** Sets whether there is a model that can answer. */
    ready(now: boolean) {
      ready = now
      update()
    },
    /** Sets whether an answer is being generated. Meanwhile the reader may write the next message. */
    busy(now: boolean) {
      busy = now
      update()
      // The button that had the focus is hidden now.
      if (document.activeElement === document.body) (busy ? stopButton : field).focus()
    },
    /** The message was sent. */
    clear() {
      field.value = ''
      attachments.set([])
    },
    /** Puts a message back that got no answer, unless the reader has begun another one. */
    giveBack(text: string, files: AttachedFile[]) {
      if (field.value === '' && attachments.files.length === 0) {
        field.value = text
        attachments.set(files)
      }
      update()
    }
  }
}
