// Markdown to HTML. HTML in the markdown is shown as text, and nothing is fetched from other sites.
import { Lexer, Marked, type Token } from 'marked'

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escape = (text: string): string => text.replace(/[&<>"']/g, character => ESCAPES[character]!)

/** The addresses to which an answer may link. A reader has to click before anything is fetched. */
const LINKED = /^(?:https?:|mailto:)/i

const link = (href: string, html: string): string =>
  LINKED.test(href) ? `<a href="${escape(href)}" target="_blank" rel="noopener noreferrer">${html}</a>` : html

/** A block of code with its language and a button that copies it. A long line can be scrolled by keyboard. */
export const codeBlock = (text: string, language: string): string =>
  `<div class="code"><div class="bar"><span>${escape(language || 'Code')}</span>` +
  `<button type="button" class="copy">Copy</button></div><pre tabindex="0"><code>${escape(text)}</code></pre></div>`

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text, block }) => (block ? `<p>${escape(text)}</p>` : escape(text)),
    code: ({ text, lang }) => codeBlock(text, lang?.split(/\s/)[0] ?? ''),
    // Every heading has the same level, so that the page's own headings keep their order.
    heading({ tokens, depth }) {
      return `<h3 class="depth-${depth}">${this.parser.parseInline(tokens)}</h3>`
    },
    link({ href, tokens }) {
      return link(href, this.parser.parseInline(tokens))
    },
    // An image would be fetched from another site, which would learn that it was shown.
    image: ({ href, text }) => link(href, `Image: ${escape(text || href)}`),
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    table({ header, rows }) {
      const cells = (row: typeof header, tag: string) =>
        row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')
      const body = rows.map(row => `<tr>${cells(row, 'td')}</tr>`).join('')
      return `<div class="table" tabindex="0"><table><thead><tr>${cells(header, 'th')}</tr></thead><tbody>${body}</tbody></table></div>`
    }
  }
})

/** The blocks of a text. Their `raw` texts together are the text. */
export const blocksOf = (text: string): Token[] => new Lexer(marked.defaults).lex(text)

/** The HTML of blocks, which has to be sanitised before it is shown. */
export const htmlOf = (blocks: Token[]): string => marked.parser(blocks)
