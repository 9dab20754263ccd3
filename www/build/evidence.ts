// The proofs of the landing page: figures from measured results, and files of the repository that show a claim.
// They are copied into the site, so that its links work from any host.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Plugin } from 'vite'

/** A comparison as `scripts/bench.mjs --peer` writes it. */
interface Comparison {
  rows: { what: string, unit: string, ours: Figure, peer: Figure }[]
}

interface Figure {
  median: number
}

/** `href="of:PATH"`: a file of the repository. */
const LINK = /href="of:([^"]+)"/g
/** A line that the rows of a comparison replace. */
const ROWS = /^( *)<!-- rows: (\S+) -->$/gm

/** The address of a file in the site. Sources get the ending `.txt`, because hosts serve that as a text. */
const addressOf = (path: string): string => `evidence/${path}${path.endsWith('.json') ? '' : '.txt'}`

/** A number with three digits, or all before the point. */
const written = (value: number): string =>
  value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))

/** How many times as good we are. Of seconds the fewer are better. */
const gain = ({ unit, ours, peer }: Comparison['rows'][number]): number =>
  unit.includes('/s') ? ours.median / peer.median : peer.median / ours.median

/** The rows of a table: what, ours, the other's, how many times as good. */
function rowsOf({ rows }: Comparison): string[] {
  return rows.map(row => {
    const { what, unit, ours, peer } = row
    const cells = [...[ours, peer].map(({ median }) => `${written(median)} ${unit}`), `${gain(row).toFixed(1)} ×`]
    return `<tr><th scope="row">${what}</th>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`
  })
}

/** Fills a page. `read` gives a file of the repository; `link` is told each file that the page links to. */
function filled(html: string, read: (path: string) => string, link: (path: string) => void): string {
  return html
    .replace(ROWS, (_, indent: string, path: string) =>
      rowsOf(JSON.parse(read(path)) as Comparison).map(row => indent + row).join('\n'))
    .replace(LINK, (_, path: string) => {
      link(path)
      return `href="${addressOf(path)}"`
    })
}

/** Fills the pages, and serves or writes the files that they link to. A file that is missing ends the build. */
export function evidence(root: string): Plugin {
  const read = (path: string) => readFileSync(resolve(root, path), 'utf8')
  const linked = new Set<string>()
  return {
    name: 'evidence',
    transformIndexHtml: { order: 'pre', handler: html => filled(html, read, path => linked.add(path)) },
    configureServer({ middlewares }) {
      middlewares.use((request, response, next) => {
        const path = [...linked].find(path => request.url === `/${addressOf(path)}`)
        if (!path) return next()
        response.setHeader('Content-Type', 'text/plain; charset=utf-8')
        response.end(read(path))
      })
    },
    generateBundle() {
      for (const path of linked) {
        this.emitFile({ type: 'asset', fileName: addressOf(path), source: read(path) })
      }
    }
  }
}
