// The documents of the site.
import { readdirSync } from 'node:fs'
import { inRoot } from '../paths.mjs'

/** The documents of docs/, the guide first. */
export const documents = () => {
  const names = readdirSync(inRoot('docs')).filter(name => name.endsWith('.md')).sort()
  return ['GUIDE.md', ...names.filter(name => name !== 'GUIDE.md')].map(name => `docs/${name}`)
}
