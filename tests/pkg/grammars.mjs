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

/** A model with as many tokens as the largest vocabularies have: words, numbers, and parts of JSON. */
export const largeModel = () => {
  const size = 128_256
  const encoder = new TextEncoder()
  const ofJson = ['{"', '":', '","', '"}', '},{', '": "', '",\n', '\n\n', '...', '00', '日本', '\\n', '\\u', '    ']
  let seed = 1
  const below = n => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor(seed / 2 ** 32 * n)
  }
  const letter = () => 'etaoinshrdlucmfwypvbgkjqxz'[Math.min(below(26), below(26))]
  const word = () => (below(2) ? ' ' : '') + Array.from({ length: 1 + below(9) }, letter).join('')
  const texts = new Set(ofJson)
  while (texts.size < size - 257) texts.add(below(20) ? word() : String(below(100_000)))
  const u32 = n => [...new Uint8Array(Uint32Array.of(n).buffer)]
  const packed = [...u32(size), ...u32(1), ...u32(size - 1)]
  for (let byte = 0; byte < 256; byte++) packed.push(0, 1, 0, byte)
  for (const text of texts) {
    const bytes = encoder.encode(text)
    packed.push(0, bytes.length, 0, ...bytes)
  }
  packed.push(1, ...bytesOf('<|end|>'))
  return { vocabulary: () => Uint8Array.from(packed), encodeWithin: text => Uint32Array.from(encoder.encode(text)) }
}

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
