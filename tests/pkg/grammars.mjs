// The module of grammars without a model: tokens of single bytes, a longer one, and one that ends an answer.
import { readFileSync } from 'node:fs'
import { inRoot } from '../../scripts/paths.mjs'

const { Formats } = await import('../../pkg/crate/formats.js')

export const TRUE = 256
export const STOP = 257

/** The tokens of a text. */
export const encode = text => {
  const bytes = [...new TextEncoder().encode(text)]
  return Uint32Array.from(text === 'true' ? [TRUE] : bytes)
}
const bytesOf = text => [text.length, 0, ...new TextEncoder().encode(text)]
const PACKED = [
  2, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0,
  ...Array.from({ length: 256 }, (_, byte) => [0, 1, 0, byte]).flat(),
  0, ...bytesOf('true'), 1, ...bytesOf('<|end|>')
]
export const MODEL = { vocabulary: () => Uint8Array.from(PACKED), encodeWithin: encode }
const MODULE = await WebAssembly.compile(readFileSync(inRoot('pkg/crate/grammar.wasm')))

/** An instance of the module. */
export const made = (model = MODEL) => Formats.of(MODULE, model)

/** The tokens of a mask. */
export const allowed = mask => [...mask].flatMap((word, n) =>
  Array.from({ length: 32 }, (_, bit) => 32 * n + bit).filter(id => (word >>> (id % 32)) & 1))

/** Whether a text is a whole answer. */
export const fits = (grammar, text) => {
  let matcher
  try {
    matcher = grammar.matcher(text)
  } catch {
    return false
  }
  const next = matcher.follow()
  matcher.free()
  return next === undefined || next instanceof Uint32Array && allowed(next).includes(STOP)
}
