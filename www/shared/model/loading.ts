// The progress bar. It shows a load and its notes, and lets the reader cancel it.
import type { LoadOptions, Progress, ProgressNote } from 'tritloom'
import { byId, create } from '../dom.ts'
import { describeNote, describeProgress } from 'tritloom/words'

/** The reason of a load that the reader has paused. Its bytes so far are stored. */
export const PAUSED = new DOMException('The download is paused. What has come is kept on this device.', 'AbortError')

/** Whether a download that is stopped now would go on where it was. */
const canPause = ({ phase, loaded, notes }: Progress): boolean =>
  phase === 'download' && loaded > 0 && notes.every(({ kind }) => kind !== 'not-stored' && kind !== 'not-resumable')

/** Runs loads under the progress bar. A new load cancels the one before it. */
export function createLoading() {
  const box = byId('loading', HTMLElement)
  const bar = byId('progress', HTMLProgressElement)
  const text = byId('progress-text', HTMLElement)
  const list = byId('load-notes', HTMLElement)
  /** The text while the model can be used but is still being stored. */
  const storing = byId('storing', HTMLElement)
  const button = byId('cancel-load', HTMLButtonElement)
  let current = new AbortController()
  let notes: ProgressNote[] = []
  /** Whether the button pauses a download, and does not cancel the load. */
  let pauses = false

  button.addEventListener('click', () => {
    current.abort(pauses ? PAUSED : new DOMException('The load was cancelled.', 'AbortError'))
  })

  function setPauses(now: boolean) {
    pauses = now
    const name = pauses ? 'Pause' : 'Cancel'
    if (button.textContent !== name) button.textContent = name
  }

  function show(progress: Progress) {
    bar.value = progress.fraction
    setPauses(canPause(progress))
    text.textContent = describeProgress(progress)
    storing.textContent = progress.phase === 'storing' ? text.textContent : ''
    // Screen readers read the list again when it changes, so it changes only with a new note.
    if (progress.notes.length !== notes.length) showNotes(progress.notes)
  }

  function showNotes(now: ProgressNote[]) {
    notes = now
    list.replaceChildren(...notes.map(note => create('li', '', describeNote(note))))
  }

  return {
    /**
     * Runs a load. Returns the notes of its progress, or null if a newer load has replaced it.
     * Throws the errors of the load.
     */
    async run(load: (options: LoadOptions) => Promise<void>): Promise<ProgressNote[] | null> {
      current.abort()
      const mine = (current = new AbortController())
      bar.removeAttribute('value')
      text.textContent = 'Starting'
      storing.textContent = ''
      showNotes([])
      setPauses(false)
      box.hidden = false
      box.scrollIntoView({ block: 'nearest' }) // On a narrow screen the settings may be in view.
      const onProgress = (progress: Progress) => {
        if (mine === current) show(progress)
      }
      try {
        await load({ signal: mine.signal, onProgress })
        return mine === current ? notes : null
      } catch (error) {
        if (mine === current) throw error
        return null
      } finally {
        if (mine === current) box.hidden = true
      }
    }
  }
}
