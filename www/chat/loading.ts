// The progress bar: shows a load, and lets the reader end it.
import type { LoadOptions, Progress } from 'ternlight'
import { byId } from '../shared/dom.ts'
import { describeProgress } from '../shared/progress.ts'

/** Runs loads under the progress bar, the newest one only. */
export function createLoading() {
  const box = byId('loading', HTMLElement)
  const bar = byId('progress', HTMLProgressElement)
  const text = byId('progress-text', HTMLElement)
  let current = new AbortController()

  byId('cancel-load', HTMLButtonElement).addEventListener('click', () => {
    current.abort(new DOMException('The load was cancelled.', 'AbortError'))
  })

  function show(progress: Progress) {
    bar.value = progress.fraction
    text.textContent = describeProgress(progress)
  }

  return {
    /** Ends the load before and starts this one. False if a newer one took its place; throws what the load throws. */
    async run(load: (options: LoadOptions) => Promise<void>): Promise<boolean> {
      current.abort()
      const mine = (current = new AbortController())
      bar.removeAttribute('value')
      text.textContent = 'Starting'
      box.hidden = false
      try {
        await load({ signal: mine.signal, onProgress: progress => mine === current && show(progress) })
        return mine === current
      } catch (error) {
        if (mine === current) throw error
        return false
      } finally {
        if (mine === current) box.hidden = true
      }
    }
  }
}
