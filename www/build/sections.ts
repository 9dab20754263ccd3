// Sections of Markdown as plain texts.

/** A section of a document, from its heading to the next one. */
export interface Section {
  /** The document's name and the heading's number in it: it changes only when headings do. */
  id: string
  document: string
  heading: string
  text: string
}

/** The sections of a document. Those without text are left out, and so is code. */
export function sectionsOf(document: string, markdown: string): Section[] {
  const sections: Section[] = []
  let [heading, lines, inCode]: [string, string[], boolean] = [document, [], false]
  const end = () => {
    const text = plain(lines.join('\n'))
    const id = `${document}#${sections.length}`
    if (text) sections.push({ id, document, heading, text })
    lines = []
  }
  for (const line of markdown.split('\n')) {
    const title = /^#{1,6} +(.+)$/.exec(line)?.[1]
    if (line.trimStart().startsWith('```')) inCode = !inCode
    else if (title && !inCode) {
      end()
      heading = plain(title)
    } else if (!inCode && !line.startsWith('    ')) lines.push(line)
  }
  end()
  return sections
}

/** The words of Markdown: no marks, and a row of a table is a line of its cells. */
const plain = (markdown: string): string => markdown
  .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
  .replace(/^\|[-| :]+\|$/gm, '')
  .replace(/^\|(.*)\|$/gm, (_, cells: string) => cells.split('|').map(cell => cell.trim()).filter(Boolean).join(': '))
  .replace(/^[-*>] +/gm, '')
  .replace(/[*`]+/g, '')
  // The lines of a paragraph are one, so that a line's end is not taken for a sentence's.
  .replace(/([^\n|])\n(?=[a-z(“"'])/g, '$1 ')
  .replace(/\n{3,}/g, '\n\n')
  .trim()
