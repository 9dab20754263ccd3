// The project's documents as texts to search, in the module `virtual:documentation`.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import type { Plugin } from 'vite'
import { sectionsOf } from './sections.ts'

const NAME = 'virtual:documentation'

/** Reads the Markdown files of `folder` and the `others`. Their sections are the module's default export. */
export function documentation(folder: string, ...others: string[]): Plugin {
  const paths = () => [...others, ...readdirSync(folder).filter(name => name.endsWith('.md')).sort().map(name => resolve(folder, name))]
  return {
    name: 'documentation',
    resolveId: id => id === NAME ? `\0${NAME}` : undefined,
    load(id) {
      if (id !== `\0${NAME}`) return undefined
      for (const path of paths()) this.addWatchFile(path)
      const sections = paths().flatMap(path => sectionsOf(basename(path, '.md'), readFileSync(path, 'utf8')))
      return `export default ${JSON.stringify(sections)}`
    }
  }
}
