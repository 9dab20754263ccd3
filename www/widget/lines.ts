// The two lines that put a widget into a page.
import { isLight } from '../shared/colour.ts'

/** The wishes of the maker of a page. An empty text is no wish. */
export interface Wishes {
  /** The address of `widget.js`. */
  script: string
  for: string
  model: string
  integrity: string
  type: string
  length: string
  lang: string
  /** The text of the button. */
  label: string
  /** A colour such as `#93500a`. */
  accent: string
  prefer: boolean
  preload: boolean
  consent: boolean
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** The element's attributes by name. Those that say what holds without them are left out. */
export function attributesOf(wishes: Wishes): [string, string][] {
  const { type, length, accent, prefer, preload, consent } = wishes
  const all: [string, string | false][] = [
    ['for', wishes.for.trim()],
    ['model', wishes.model.trim()],
    ['integrity', wishes.model.trim() && wishes.integrity.trim()],
    ['type', type !== 'tldr' && type],
    ['length', length !== 'short' && length],
    ['lang', wishes.lang],
    ['prefer', prefer && 'browser'],
    ['consent', consent && 'given'],
    ['style', accent && `--tldr-accent: ${accent}; --tldr-on-accent: ${readableOn(accent)}`]
  ]
  const given = all.filter((entry): entry is [string, string] => Boolean(entry[1]))
  return preload ? [...given, ['preload', '']] : given
}

/** The lines, to be pasted into a page. */
export function linesOf(wishes: Wishes): string {
  const attributes = attributesOf(wishes).map(([name, value]) => value ? ` ${name}="${escaped(value)}"` : ` ${name}`)
  const label = wishes.label.trim()
  const inside = label && `<span slot="sum-up">${escaped(label)}</span>`
  return `<script type="module" src="${escaped(wishes.script.trim())}"></script>\n` +
    `<tldr-widget${attributes.join('')}>${inside}</tldr-widget>`
}

/** Black or white: what can be read better on a colour such as `#93500a`. */
function readableOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16)) as [number, number, number]
  return isLight([red, green, blue]) ? '#000000' : '#ffffff'
}
