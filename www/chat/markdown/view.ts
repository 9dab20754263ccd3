// Markdown on the page while it grows. A frame reads a bounded amount of text, and changes only the end of the page.
import { Blocks, type Part } from './blocks.ts'
import { codeBlock, htmlOf } from './html.ts'
import { sanitised } from './sanitise.ts'

/** Characters that a frame takes. Those that come faster are shown in later frames. */
const MAX_FRAME = 4000

/** The elements whose children are items and rows. */
const INNER = { list: 'ul, ol', table: 'tbody' } as const

/** A text on the page that grows. */
export interface Growing {
  /** Shows the next text, in the next frame. */
  append(text: string): void
  /** The text has ended: shows all of it now. */
  end(): void
}

/**
 * Shows markdown in `box`. `onBlock` gets the text of each block when it is done, `onFrame` is called after a change
 * of the page.
 */
export function createMarkdown(box: HTMLElement, onBlock: (text: string) => void = () => {}, onFrame = () => {}): Growing {
  const blocks = new Blocks()
  let waiting = ''
  let frame = 0
  /** The nodes of the open part, which the next text replaces. */
  let openNodes: ChildNode[] = []
  /** The list or the rows of the table that grows. */
  let inner: Element | undefined
  /** The text of the code that grows. */
  let code: Text | undefined

  function show({ done, open }: { done: Part[], open?: Part | undefined }) {
    for (const node of openNodes) node.remove()
    for (const part of done) {
      const nodes = put(part)
      // Code is not read aloud.
      const isCode = part.kind === 'code' || part.block.type === 'code'
      const text = isCode ? '' : nodes.map(({ textContent }) => textContent).join(' ').trim()
      if (text) onBlock(text)
    }
    openNodes = open ? put(open) : []
  }

  /** Puts a part at the end. Returns the nodes that are new. */
  function put(part: Part): ChildNode[] {
    if (part.kind === 'code') return putCode(part)
    const fragment = sanitised(htmlOf([part.block]))
    if (part.kind === 'block') {
      const nodes = [...fragment.childNodes]
      // A long paragraph in several parts is shown as one.
      if (!part.isNew) for (const node of [box.lastElementChild, fragment.firstElementChild]) node?.classList.add('joined')
      box.append(fragment)
      return nodes
    }
    const found = fragment.querySelector(INNER[part.kind])!
    if (!part.isNew && inner) {
      const children = [...found.children]
      inner.append(...children)
      return children
    }
    inner = found
    const nodes = [...fragment.childNodes]
    box.append(fragment)
    return nodes
  }

  function putCode({ text, language, isNew }: Part & { kind: 'code' }): ChildNode[] {
    if (isNew || !code) {
      const block = sanitised(codeBlock('', language))
      code = new Text()
      block.querySelector('code')!.append(code)
      box.append(block)
    }
    code.appendData(text)
    return []
  }

  function take(length: number) {
    const text = waiting.slice(0, length)
    waiting = waiting.slice(length)
    show(blocks.add(text))
  }

  function onNextFrame() {
    take(MAX_FRAME)
    frame = waiting ? requestAnimationFrame(onNextFrame) : 0
    onFrame()
  }

  return {
    append(text) {
      waiting += text
      frame ||= requestAnimationFrame(onNextFrame)
    },
    end() {
      cancelAnimationFrame(frame)
      frame = 0
      while (waiting) take(MAX_FRAME)
      show({ done: blocks.end() })
      onFrame()
    }
  }
}

/** Shows markdown that does not grow. */
export function showMarkdown(box: HTMLElement, text: string) {
  const markdown = createMarkdown(box)
  markdown.append(text)
  markdown.end()
}
