// The vectors of an index as rows of int8 codes, in the memory of a small module that multiplies them.
//
// A row times its scale differs from the vector that it stands for, and the length of the difference is kept. So each
// scalar product of rows has bounds between which that of the vectors is, and only vectors that may be among the best
// are ever read.
import { BitNetError } from '../error.js'

/** Rows that are stored together. */
export const ROWS = 128

/** The most values of a vector: the sum of their products still fits into 32 bits. */
export const MAX_DIMENSIONS = 8192

/** Where `products.wat` writes, and where its memory has room for rows. */
const PRODUCTS = 32_768
const PAGE = 65_536

/** The largest codes of a row and of a query. */
const ROW_CODES = 127
const QUERY_CODES = 2047

/** More than what rounding adds to any scalar product here. */
const ROUNDING = 1e-5

/** Made of `products.wat` by binaryen's `wasm-as --enable-simd`. */
const MODULE =
  'AGFzbQEAAAABBwFgA39/fwADAgEABQMBAAEHFQIGbWVtb3J5AgAIcHJvZHVjdHMAAAqjAQGgAQIDfwJ7QYCAAiEFA0AgACEDIAAgAmohAEEAIQT9DAAAAA' +
  'AAAAAAAAAAAAAAAAAhBwNAIAP9AAQAIQYgByAG/YcBIAT9AAQA/boBIAb9iAEgBP0ABBD9ugH9rgH9rgEhByAEQSBqIQQgA0EQaiIDIABJDQALIAUgB/0b' +
  'ACAH/RsBaiAH/RsCIAf9GwNqajYCACAFQQRqIQUgACABSQ0ACws='

/** A block of `ROWS` rows. A row that is not used has the scale 0. */
export interface Block {
  codes: Int8Array<ArrayBuffer>
  /** The value of a code of each row. */
  scales: Float32Array<ArrayBuffer>
  /** The length of each vector's difference from its row. */
  errors: Float32Array<ArrayBuffer>
}

/** A row that may be among the best. */
export interface Candidate {
  slot: number
  /** The scalar product is not above this. */
  most: number
}

interface Exports {
  memory: WebAssembly.Memory
  products(row: number, end: number, bytes: number): void
}

/** Codes of the values of a vector, up to `max`, and how long its difference from them is. */
function encode(vector: Float32Array, max: number) {
  let largest = 0
  for (const value of vector) largest = Math.max(largest, Math.abs(value))
  // As it is stored, so that the row says the same later.
  const scale = Math.fround(largest / max)
  const codes = new Int16Array(vector.length)
  let square = 0
  for (let n = 0; n < codes.length; n++) {
    const code = scale && Math.max(-max, Math.min(max, Math.round(vector[n]! / scale)))
    const difference = vector[n]! - code * scale
    codes[n] = code
    square += difference * difference
  }
  return { codes, scale, error: Math.sqrt(square) }
}

/** The row of a vector. Its error is as it is stored: rounding to 32 bits has not made it less. */
function rowOf(vector: Float32Array) {
  const { codes, scale, error } = encode(vector, ROW_CODES)
  return { codes, scale, error: Math.fround(error * (1 + 1e-6)) }
}

/** The bytes of a row: multiples of 16, as the module multiplies that many at once. */
export const bytesOf = (dimensions: number): number => Math.ceil(dimensions / 16) * 16

export const emptyBlock = (dimensions: number): Block => ({
  codes: new Int8Array(ROWS * bytesOf(dimensions)), scales: new Float32Array(ROWS), errors: new Float32Array(ROWS)
})

/** Writes a vector into a block. */
export function writeRow({ codes, scales, errors }: Block, row: number, vector: Float32Array): void {
  const coded = rowOf(vector)
  codes.set(coded.codes, row * bytesOf(vector.length))
  scales[row] = coded.scale
  errors[row] = coded.error
}

export class Rows {
  readonly dimensions: number
  #bytes: number
  #exports: Exports
  /** The scales and errors of each block. Their codes are in the module's memory. */
  #blocks: Omit<Block, 'codes'>[] = []

  private constructor(dimensions: number, exports: Exports) {
    this.dimensions = dimensions
    this.#bytes = bytesOf(dimensions)
    this.#exports = exports
  }

  static async create(dimensions: number): Promise<Rows> {
    try {
      const bytes = Uint8Array.from(atob(MODULE), char => char.charCodeAt(0))
      const { instance } = await WebAssembly.instantiate(bytes)
      return new Rows(dimensions, instance.exports as unknown as Exports)
    } catch (cause) {
      throw new BitNetError('missing-feature', 'an index needs WebAssembly with SIMD', { cause })
    }
  }

  /** The number of blocks. */
  get blocks(): number {
    return this.#blocks.length
  }

  /** A copy of a block, or an empty one. */
  block(number: number): Block {
    const block = this.#blocks[number]
    if (!block) return emptyBlock(this.dimensions)
    const { scales, errors } = block
    return { codes: this.#codes(number).slice(), scales: scales.slice(), errors: errors.slice() }
  }

  /** Takes a block in place of that of its number, or as the next. */
  setBlock(number: number, { codes, scales, errors }: Block): void {
    this.#reserve(number + 1)
    this.#codes(number).set(codes)
    this.#blocks[number] = { scales, errors }
  }

  isUsed(slot: number): boolean {
    return (this.#blocks[Math.floor(slot / ROWS)]?.scales[slot % ROWS] ?? 0) > 0
  }

  /** Whether a row is that of this vector. */
  isOf(slot: number, vector: Float32Array): boolean {
    const [number, row] = [Math.floor(slot / ROWS), slot % ROWS]
    const { codes, scale, error } = rowOf(vector)
    const { scales, errors } = this.#blocks[number]!
    const stored = this.#codes(number).subarray(row * this.#bytes)
    return scale === scales[row] && error === errors[row] && codes.every((code, n) => code === stored[n])
  }

  /** The rows that may be among the `k` best of those that are wanted, in falling order of `most`. */
  candidates(query: Float32Array, k: number, isWanted: (slot: number) => boolean): Candidate[] {
    const { codes, scale, error } = encode(query, QUERY_CODES)
    const { memory, products } = this.#exports
    new Int16Array(memory.buffer, 0, this.#bytes).fill(0).set(codes)
    const found: Candidate[] = []
    const least = new Best(k)
    const results = new Int32Array(memory.buffer, PRODUCTS, ROWS)
    this.#blocks.forEach(({ scales, errors }, number) => {
      const start = this.#start(number)
      products(start, start + ROWS * this.#bytes, this.#bytes)
      for (let row = 0; row < ROWS; row++) {
        const slot = number * ROWS + row
        if (!scales[row] || !isWanted(slot)) continue
        const about = results[row]! * scale * scales[row]!
        // The lengths of query and vector are 1, but for rounding.
        const around = errors[row]! + error * (1 + errors[row]!) + ROUNDING
        least.add(about - around)
        if (about + around >= least.border) found.push({ slot, most: about + around })
      }
    })
    least.trim()
    return found.filter(({ most }) => most >= least.border).sort((a, b) => b.most - a.most || a.slot - b.slot)
  }

  #start(number: number): number {
    return PAGE + number * ROWS * this.#bytes
  }

  #codes(number: number): Int8Array<ArrayBuffer> {
    return new Int8Array(this.#exports.memory.buffer as ArrayBuffer, this.#start(number), ROWS * this.#bytes)
  }

  #reserve(blocks: number): void {
    const { memory } = this.#exports
    const needed = this.#start(blocks)
    const missing = Math.ceil((needed - memory.buffer.byteLength) / PAGE)
    if (missing <= 0) return
    try {
      memory.grow(missing)
    } catch (cause) {
      throw new BitNetError('out-of-memory', `there is no memory for an index of ${needed} bytes`, { cause })
    }
  }
}

/** The `k` largest of numbers. */
class Best {
  /** The last of them, as of the last `trim`; minus infinity if there are fewer. */
  border = -Infinity
  #k: number
  #values: number[] = []

  constructor(k: number) {
    this.#k = k
  }

  add(value: number): void {
    if (value <= this.border) return
    this.#values.push(value)
    if (this.#values.length >= 2 * this.#k + 64) this.trim()
  }

  /** Lets go of the numbers that are not among them. */
  trim(): void {
    this.#values.sort((a, b) => b - a)
    this.#values.length = Math.min(this.#k, this.#values.length)
    this.border = this.#values[this.#k - 1] ?? -Infinity
  }
}
