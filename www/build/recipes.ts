// The recipes of the documentation as modules, so that the page of live examples runs what the document says.
import type { Plugin } from 'vite'

const LIST = 'virtual:recipes'
const ONE = 'virtual:recipe/'
/** Names of modules that no other plugin reads begin so. */
const OWN = '\0'

interface Recipe {
  title: string
  about: string
  code: string
}

/** The sections of a document that have a block of code: title, paragraph, code. */
export function recipesOf(text: string): Recipe[] {
  return [...text.matchAll(/^## (.+)\n\n([^]*?)\n\n```js\n([^]*?)```$/gm)].map(([, title, about, code]) =>
    ({ title: title!, about: about!.replaceAll('\n', ' '), code: code! }))
}

/** Makes `virtual:recipes` of a document: an array with the recipes, each with its code and as a function. */
export function recipes(text: string): Plugin {
  const found = recipesOf(text)
  return {
    name: 'recipes',
    resolveId: id => id === LIST || id.startsWith(ONE) ? OWN + id : undefined,
    load(id) {
      if (id === OWN + LIST) {
        const items = found.map((recipe, n) => `{ ...${JSON.stringify(recipe)}, load: () => import('${ONE}${n}') }`)
        return `export const recipes = [${items.join(', ')}]`
      }
      if (!id.startsWith(OWN + ONE)) return undefined
      const { code } = found[Number(id.slice((OWN + ONE).length))]!
      return `export const run = async ({ model, show, signal }) => {\n${code}\n}`
    }
  }
}
