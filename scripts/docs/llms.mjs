// The documentation for programs that read: an outline in the form of llmstxt.org, and all of it.

/** A Markdown text's title, and the first sentence below it. */
const titleOf = text => {
  const [, title, paragraph] = /^# (.+)\n\n((?:[^#\n].*\n)+)/.exec(text) ?? []
  if (!title) throw new Error(`no sentence below its title: ${text.slice(0, 60)}`)
  const [sentence] = /^.+?[.:](?= |$)/.exec(paragraph.trim().replaceAll('\n', ' ')) ?? [paragraph.trim()]
  // A link would lead nowhere from where the sentence is shown.
  return { title, about: sentence.replace(/:$/, '.').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1') }
}

/**
 * The title, the first sentence and the address of each of the documents.
 * @param {{ path: string, text: string }[]} documents
 * @returns {{ title: string, about: string, address: string }[]}
 */
export const documentLines = documents =>
  documents.map(({ path, text }) => {
    const name = path.replace(/^.*\//, '').replace(/\.md$/, '')
    return { ...titleOf(text), address: `docs/documents/${name}.html` }
  })

/** The outline: the README's beginning, and a line for each of the documents. */
export const outline = (readme, documents) => {
  const { title, about } = titleOf(readme)
  const lines = documentLines(documents).map(({ title, about, address }) => `- [${title}](${address}): ${about}`)
  return [
    `# ${title}`, `> ${about}`, '## Documents', lines.join('\n'), '## Optional',
    '- [All of it, with the types](llms-full.txt)', ''
  ].join('\n\n')
}

/** README, documents and types, one after the other. */
export const fullText = (readme, documents, types) =>
  [readme, ...documents.map(({ text }) => text), `# Types\n\n\`\`\`ts\n${types}\`\`\`\n`].join('\n\n')
