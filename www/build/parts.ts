// Puts HTML that several pages share into each of them.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Plugin } from 'vite'

/** Replaces each line `<!-- part: NAME -->` of a page by the file of that name in `folder`. */
export function sharedParts(folder: string): Plugin {
  const read = (indent: string, name: string) =>
    readFileSync(resolve(folder, name), 'utf8').trimEnd().replace(/^(?=.)/gm, indent)
  return {
    name: 'shared-parts',
    transformIndexHtml: {
      order: 'pre',
      handler: html => html.replace(/^( *)<!-- part: (\S+) -->$/gm, (_, indent, name) => read(indent, name))
    }
  }
}
