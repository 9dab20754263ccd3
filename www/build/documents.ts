// The list of the documents on the landing page.
import type { Plugin } from 'vite'
import { documentLines } from '../../scripts/docs/llms.mjs'

/** The line that the list replaces. */
const PLACE = /^( *)<!-- documents -->$/m
/** Lines that are only there with the documents. */
const ONLY = /^ *<!-- with documents -->\n([\s\S]*?)^ *<!-- end -->\n/gm

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('`', '')

/** Lists the documents, if they are made with the site; else leaves out what is about them. */
export function documents(texts: { path: string, text: string }[], areMade: boolean): Plugin {
  const items = (indent: string) => documentLines(texts)
    .map(({ title, about, address }) =>
      `${indent}<li><a href="${address}">${escaped(title)}</a><span>${escaped(about)}</span></li>`)
    .join('\n')
  return {
    name: 'documents',
    transformIndexHtml: {
      order: 'pre',
      handler: html => html
        .replace(ONLY, (_, inside: string) => areMade ? inside : '')
        .replace(PLACE, (_, indent: string) => items(indent))
    }
  }
}
