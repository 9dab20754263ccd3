// An answer that is no markdown, such as JSON, as it grows: each character counts, so it is shown as it is.
import { codeBlock } from './html.ts'
import { sanitised } from './sanitise.ts'
import type { Growing } from './view.ts'

/** Shows a text in `box` as code. `onFrame` is called after a change of the page. */
export function createCode(box: HTMLElement, language: string, onFrame: () => void): Growing {
  const block = sanitised(codeBlock('', language))
  const text = new Text()
  block.querySelector('code')!.append(text)
  box.append(block)
  return {
    append(more) {
      text.appendData(more)
      onFrame()
    },
    end: () => {}
  }
}
