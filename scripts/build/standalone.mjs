// Scripts of wasm-bindgen without what they need not have.
import { Stop } from '../report.mjs'

/** The documentation that wasm-bindgen writes; the types have the same. */
export const JSDOC = /^ *\/\*\*\n(?: *\*.*\n)*? *\*\/\n/gm

/** `import { name, other } from 'path'`, and `import * as name from "path"`. */
const IMPORT = /^import (\{[\w, ]+\}|\* as \w+) from ['"]([^'"]+)['"];?$/gm

/**
 * A script of wasm-bindgen without its imports: `provide` gives it what they would. So it can be copied
 * to any folder as it is.
 */
export const standalone = glue => {
  const imports = [...glue.matchAll(IMPORT)]
  const names = imports.flatMap(([, what]) => what.replace('* as ', '').match(/\w+/g))
  const take = ([, what, path]) =>
    what.startsWith('{') ? `  (${what} = modules['${path}']);` : `  ${what.replace('* as ', '')} = modules['${path}'];`
  const provide = ['', `let ${names.join(', ')};`, 'export function provide(modules) {', ...imports.map(take), '}']
  const rest = glue.replace(IMPORT, '').replace(JSDOC, '').replace('/* @ts-self-types="./tritloom.d.ts" */', '')
  if (/^import\b/m.test(rest)) throw new Stop('wasm-bindgen imports in a form that is not known.')
  return `${rest.trim()}\n${provide.join('\n')}\n`
}
