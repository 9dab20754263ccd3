// Messages at the top of a page, about missing features and errors.
import type { Availability } from 'tritloom'
import { byId, create } from './dom.ts'
import type { Failure } from 'tritloom/words'

/** Shows a box under a name. It replaces the box before; null removes that. */
export function showNotice(name: string, box: HTMLElement | null) {
  const notices = byId('notices', HTMLElement)
  notices.querySelector(`[data-notice="${name}"]`)?.remove()
  if (!box) return
  box.dataset.notice = name
  notices.append(box)
}

/** A box with news that is no error. */
export function noticeBox(text: string): HTMLElement {
  return create('div', 'notice', text)
}

/** A box with news that stays until the reader closes it. */
export function closableBox(text: string): HTMLElement {
  const [box, close] = [noticeBox(text), create('button', '', 'Close')]
  box.classList.add('closable')
  close.type = 'button'
  close.addEventListener('click', () => box.remove())
  box.append(close)
  return box
}

/**
 * Shows that the GPU is gone, until the next answer shows that the model is back. `next` is what the
 * reader is to do, in a word.
 */
export function showLoss(next: string) {
  const what = 'The GPU was lost: its driver was reset, or the browser took it away.'
  const then = `Your next ${next} brings the model back, which takes as long as loading it did.`
  showNotice('loss', noticeBox(`${what} ${then}`))
}

/** A box with an error: message, code, advice. */
export function failureBox(title: string, { code, message, advice }: Failure): HTMLElement {
  const box = alertBox(title, `${message} `)
  box.lastElementChild!.append(create('code', '', code))
  if (advice) box.append(create('p', '', advice))
  return box
}

function alertBox(title: string, text: string): HTMLElement {
  const box = create('div', 'failure')
  box.role = 'alert'
  box.append(create('strong', '', title), create('p', '', text))
  return box
}

/** Shows why no model can run. Gives whether one can. */
export async function checkAvailable(availability: Promise<Availability>): Promise<boolean> {
  const { available, reason } = await availability
  if (!available) {
    const box = alertBox('No model can run here', reason ?? '')
    box.append(create('p', '', 'Open this page in a newer browser, or on another device.'))
    showNotice('available', box)
  }
  return available
}
