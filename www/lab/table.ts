// Tables of figures.
import { create } from '../shared/dom.ts'

/** A cell: a text, or an element that is put into it. */
export type Cell = string | Node

/** A row: its name, and its cells. */
export interface Row {
  name: Cell
  cells: Cell[]
}

/** Fills a table. The first column has the names of rows. */
export function fillTable(table: HTMLElement, columns: string[], rows: Row[]) {
  const head = create('thead')
  const line = create('tr')
  for (const column of columns) {
    const cell = create('th', '', column)
    cell.scope = 'col'
    line.append(cell)
  }
  head.append(line)
  const body = create('tbody')
  for (const { name, cells } of rows) {
    const line = create('tr')
    const first = create('th')
    first.scope = 'row'
    first.append(name)
    line.append(first)
    for (const content of cells) {
      const cell = create('td')
      cell.append(content)
      line.append(cell)
    }
    body.append(line)
  }
  table.replaceChildren(head, body)
}

/** A whole number, or another one with four digits that count. */
export const figure = (value: number): string =>
  value.toLocaleString('en', Number.isInteger(value) ? {} : { maximumSignificantDigits: 4 })

/** A share in per cent. */
export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`
