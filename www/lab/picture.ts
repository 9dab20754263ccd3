// Pictures of numbers, as the pixels of a canvas.
import type { Colour } from '../shared/colour.ts'

/** Pixels of a picture, four bytes each. */
export interface Picture {
  width: number
  height: number
  pixels: Uint8ClampedArray<ArrayBuffer>
}

/** The colours of values below and above 0, which can be told apart by those who see few colours. */
const BELOW: Colour = [33, 102, 172]
const ABOVE: Colour = [214, 96, 4]
const ZERO: Colour = [247, 247, 247]

/** The colour of a share from -1 to 1; grey of what is no number. */
export function colourOf(share: number): Colour {
  if (Number.isNaN(share)) return [128, 128, 128]
  const [towards, size] = [share < 0 ? BELOW : ABOVE, Math.min(1, Math.abs(share))]
  const mixed = ZERO.map((zero, n) => Math.round(zero + (towards[n]! - zero) * size))
  return mixed as unknown as Colour
}

/** Steps from 0 to a whole colour: no colour has more. */
const STEPS = 255

/** The pixels of shares from -1 to 1, as a canvas has them, and last the one of what is no number. */
const pixelsOfShares = (): Uint32Array => {
  const shares = [...Array.from({ length: 2 * STEPS + 1 }, (_, n) => n / STEPS - 1), NaN]
  return new Uint32Array(Uint8ClampedArray.from(shares.flatMap(share => [...colourOf(share), 255])).buffer)
}

/**
 * A pixel for each of `values`, rows of `width`. The greatest size has the whole colour; values of size 0 are white.
 */
export function pictureOf(values: Float32Array, width: number): Picture {
  let greatest = 0
  for (const value of values) {
    const size = Math.abs(value)
    if (size > greatest && size < Infinity) greatest = size
  }
  const height = Math.floor(values.length / width)
  const pixels = new Uint32Array(width * height)
  const table = pixelsOfShares()
  const factor = greatest > 0 ? 1 / greatest : 1
  for (let n = 0; n < pixels.length; n++) {
    const share = Math.max(-1, Math.min(1, values[n]! * factor))
    pixels[n] = table[Number.isNaN(share) ? 2 * STEPS + 1 : Math.round((share + 1) * STEPS)]!
  }
  return { width, height, pixels: new Uint8ClampedArray(pixels.buffer) }
}

/** A part of a matrix: `height` rows from the first on, and `width` columns from `column` on. */
export function partOf(values: Float32Array, columns: number, column: number, width: number): Float32Array {
  const rows = Math.floor(values.length / columns)
  const part = new Float32Array(rows * width)
  for (let row = 0; row < rows; row++) {
    const from = row * columns + column
    part.set(values.subarray(from, from + width), row * width)
  }
  return part
}

/** Draws a picture, a pixel of the canvas for each. */
export function draw(canvas: HTMLCanvasElement, { width, height, pixels }: Picture) {
  canvas.width = width
  canvas.height = height
  canvas.getContext('2d')!.putImageData(new ImageData(pixels, width, height), 0, 0)
}
