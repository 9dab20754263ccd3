// Models that the tests need and that are no files: those of tests/data, changed.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const read = path => readFileSync(fileURLToPath(new URL(`../data/${path}`, import.meta.url)))

/** Ten parts of 1 MiB, the last one shorter. */
export const SPREAD_SIZE = 10_342_944

/** Eighteen parts of 4 MiB, after a first of 1 MiB. */
export const WIDE_SIZE = 73 << 20

/** Tensors of a GGUF file begin at multiples of this. */
const ALIGNMENT = 32

/**
 * The small random model in a file as long as a larger one. The loader's tests need bytes to fetch
 * and store; they need a model only to see that the bytes came through. Its tensors are spread over
 * the file, so that each part has some: the first begins after the header, the last ends with the
 * file.
 * @param {number} [size] bytes of the file
 * @returns {Buffer}
 */
export function spreadModel(size = SPREAD_SIZE) {
  const small = read('tiny/tiny-bitnet-b1.58.gguf')
  const { tensors, dataStart } = header(small)
  const room = size - small.length
  const spread = Buffer.alloc(size)
  small.copy(spread, 0, 0, dataStart)
  for (const [index, { start, offsetField }] of tensors.entries()) {
    const moved = start + Math.floor(room * index / (tensors.length - 1) / ALIGNMENT) * ALIGNMENT
    spread.writeBigUInt64LE(BigInt(moved - dataStart), offsetField)
    small.copy(spread, moved, start, tensors[index + 1]?.start)
  }
  return spread
}

/**
 * The spread model in several files of about the same size, as `gguf-split` cuts a model: the first
 * has the metadata, each has a header for its own tensors.
 * @param {number} count
 * @returns {Buffer[]}
 */
export function volumes(count) {
  const whole = spreadModel()
  const { tensors, metadata, metadataCount } = header(whole)
  const number = (bytes, value) => {
    const field = Buffer.alloc(bytes)
    if (bytes === 8) field.writeBigUInt64LE(BigInt(value))
    else field.writeUIntLE(value, 0, bytes)
    return field
  }
  const entry = (key, type, bytes, value) =>
    Buffer.concat([number(8, key.length), Buffer.from(key), number(4, type), number(bytes, value)])
  const first = volume => Math.ceil(tensors.length * volume / count)
  return Array.from({ length: count }, (_, volume) => {
    const own = tensors.slice(first(volume), first(volume + 1))
    const start = own[0].start
    const end = tensors[first(volume + 1)]?.start ?? whole.length
    const split = [
      entry('split.no', U16, 2, volume), entry('split.count', U16, 2, count),
      entry('split.tensors.count', I32, 4, tensors.length)
    ]
    const head = Buffer.concat([
      whole.subarray(0, 8), number(8, own.length), number(8, split.length + (volume ? 0 : metadataCount)),
      ...volume ? [] : [metadata], ...split,
      ...own.flatMap(tensor => [tensor.row, number(8, tensor.start - start)])
    ])
    const padding = Buffer.alloc(Math.ceil(head.length / ALIGNMENT) * ALIGNMENT - head.length)
    return Buffer.concat([head, padding, whole.subarray(start, end)])
  })
}

/** Bytes of a description that is longer than what may wait in memory to be stored. */
const LONG_TEXT = 18 << 20

/**
 * The small random model with such a description: nearly all of the file is its header.
 * @returns {Buffer}
 */
export function longModel() {
  const small = read('tiny/tiny-bitnet-b1.58.gguf')
  const { tensors, metadata, metadataCount } = header(small)
  const number = value => {
    const field = Buffer.alloc(8)
    field.writeBigUInt64LE(BigInt(value))
    return field
  }
  const key = 'general.description'
  const head = Buffer.concat([
    small.subarray(0, 8), number(tensors.length), number(metadataCount + 1), metadata,
    number(key.length), Buffer.from(key), Buffer.from([TEXT, 0, 0, 0]), number(LONG_TEXT), Buffer.alloc(LONG_TEXT, '.'),
    ...tensors.flatMap(tensor => [tensor.row, number(tensor.offset)])
  ])
  const padding = Buffer.alloc(Math.ceil(head.length / ALIGNMENT) * ALIGNMENT - head.length)
  return Buffer.concat([head, padding, small.subarray(tensors[0].start)])
}

const I2_S = 36
const U16 = 2
const I32 = 5

/**
 * The golden model with its codes in the order of ARM builds of bitnet.cpp: see src/ternary.rs.
 * @returns {Buffer}
 */
export function armModel() {
  const file = read('golden/golden.gguf')
  for (const { type, elements, start } of header(file).tensors) {
    if (type !== I2_S) continue
    for (let at = start; at < start + elements / 4; at += 32) {
      const block = Buffer.from(file.subarray(at, at + 32))
      const code = element => block[element % 32] >> 6 - 2 * (element >> 5) & 3
      for (let byte = 0; byte < 32; byte++) {
        const first = 64 * (byte >> 4) + byte % 16
        file[at + byte] = code(first) << 6 | code(first + 16) << 4 | code(first + 32) << 2 | code(first + 48)
      }
    }
  }
  return file
}

/**
 * The golden model with another pre-tokenizer. The model's own name is filled up with spaces, so
 * that the header keeps its length and the tensors stay where they are.
 * @param {string} pre
 * @returns {Buffer}
 */
export function preTokenizerModel(pre) {
  const file = read('golden/golden.gguf')
  const changed = withText(withText(file, 'tokenizer.ggml.pre', () => pre), 'general.name', name => {
    return name.padEnd(name.length + 'llama-bpe'.length - pre.length)
  })
  if (changed.length !== file.length) throw new Error('the tensors were moved')
  return changed
}

/** A GGUF file with another text in its metadata. */
function withText(file, key, change) {
  // After the key comes the type, then the length.
  const length = file.indexOf(key) + key.length + 4
  const start = length + 8
  const end = start + Number(file.readBigUInt64LE(length))
  const text = Buffer.from(change(file.toString('utf8', start, end)))
  const counted = Buffer.alloc(8)
  counted.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([file.subarray(0, length), counted, text, file.subarray(end)])
}

/** Lengths in bytes of the metadata types that have one, by the type's number. */
const LENGTHS = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8]
const TEXT = 8
const ARRAY = 9

/** The tensors of a GGUF file, where their bytes begin, and the bytes of its metadata. */
function header(file) {
  let at = 8
  const skip = bytes => (at += bytes)
  const number = () => file.readUInt32LE(skip(4) - 4)
  const count = () => Number(file.readBigUInt64LE(skip(8) - 8))
  const skipText = () => skip(count())
  const skipValue = type => {
    if (type === TEXT) return skipText()
    if (type !== ARRAY) return skip(LENGTHS[type])
    const [element, length] = [number(), count()]
    for (let index = 0; index < length; index++) skipValue(element)
  }
  const [tensorCount, entries] = [count(), count()]
  const metadataStart = at
  for (let entry = 0; entry < entries; entry++) {
    skipText()
    skipValue(number())
  }
  const metadata = file.subarray(metadataStart, at)
  const rows = Array.from({ length: tensorCount }, () => {
    const rowStart = at
    skipText()
    let elements = 1
    for (let dimensions = number(); dimensions > 0; dimensions--) elements *= count()
    const type = number()
    return { elements, type, row: file.subarray(rowStart, at), offsetField: at, offset: count() }
  })
  const dataStart = Math.ceil(at / ALIGNMENT) * ALIGNMENT
  const tensors = rows.map(row => ({ ...row, start: dataStart + row.offset }))
  return { tensors, dataStart, metadata, metadataCount: entries }
}
