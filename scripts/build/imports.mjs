// Shorter names for what the engine imports. wasm-bindgen ends each name with a hash, and hashes do
// not compress: they are a fifth of its script and of the worker, gzipped.
import { Stop } from '../report.mjs'

/** A name with its hash. */
const HASHED = /\b(__wb[a-z]+_\w*?)_[0-9a-f]{16}\b/g

/** The section of a module that has its imports, and the kinds of imports that there are. */
const IMPORTS = 2
const FUNCTION = 0
const MEMORY = 2

/** The flags of a memory that threads share. It has a least and a most size. */
const SHARED = 3

/** Where the sections begin, after the magic number and the version. */
const FRONT = 8

/**
 * The same module and script, in which names of imports have no hash. Names that would be the same
 * get a number.
 */
export const withoutHashes = (wasm, script) => {
  const names = shortened(namesIn(script))
  const renamed = script.replace(HASHED, name => names.get(name))
  return { wasm: renamedIn(wasm, names), script: renamed }
}

const namesIn = script => new Set(Array.from(script.matchAll(HASHED), ([name]) => name))

const shortened = names => {
  const counts = new Map()
  const shorter = name => {
    const short = name.replace(HASHED, '$1')
    const count = (counts.get(short) ?? 0) + 1
    counts.set(short, count)
    return count === 1 ? short : `${short}_${count}`
  }
  const all = new Map(Array.from(names, name => [name, shorter(name)]))
  if (new Set(all.values()).size < all.size) throw new Stop('Two imports of the engine have the same short name.')
  return all
}

const renamedIn = (wasm, names) => {
  const parts = [wasm.subarray(0, FRONT)]
  for (const reader = new Reader(wasm, FRONT); reader.at < wasm.length; ) {
    const begin = reader.at
    const id = reader.number()
    const end = reader.number() + reader.at
    const isImports = id === IMPORTS
    const body = isImports ? importsIn(wasm.subarray(reader.at, end), names) : undefined
    parts.push(...(body ? [Buffer.of(id), number(body.length), body] : [wasm.subarray(begin, end)]))
    reader.at = end
  }
  return Buffer.concat(parts)
}

/** The section of imports with other names. */
const importsIn = (section, names) => {
  const reader = new Reader(section)
  const count = reader.number()
  const parts = [number(count)]
  for (let n = 0; n < count; n++) {
    const [module, name] = [reader.text(), reader.text()]
    const [kind, value] = [reader.number(), reader.number()]
    const isMemory = kind === MEMORY && value === SHARED
    if (kind !== FUNCTION && !isMemory) throw new Stop(`The engine imports ${name}, which is no function.`)
    parts.push(text(module), text(names.get(name) ?? name), Buffer.of(kind), number(value))
    if (isMemory) parts.push(number(reader.number()), number(reader.number()))
  }
  return Buffer.concat(parts)
}

/** Reads the numbers and texts of a module. */
class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes
    this.at = at
  }

  /** A number in groups of 7 bits, the lowest first. */
  number() {
    let [value, shift, byte] = [0, 0, 0]
    do {
      byte = this.bytes[this.at++]
      value += (byte & 127) * 2 ** shift
      shift += 7
    } while (byte > 127)
    return value
  }

  text() {
    const bytes = this.number()
    this.at += bytes
    return Buffer.from(this.bytes.subarray(this.at - bytes, this.at)).toString()
  }
}

const number = value => {
  const bytes = []
  do {
    bytes.push((value & 127) + (value > 127 ? 128 : 0))
    value = Math.floor(value / 128)
  } while (value > 0)
  return Buffer.from(bytes)
}

const text = said => {
  const bytes = Buffer.from(said)
  return Buffer.concat([number(bytes.length), bytes])
}
