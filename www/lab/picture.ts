// Pictures of numbers, as the pixels of a canvas.

/** Pixels of a picture, four bytes each. */
export interface Picture {
  width: number
  height: number
  pixels: Uint8ClampedArray<ArrayBuffer>
}

type Colour = readonly [red: number, green: number, blue: number]

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

/** The colour as CSS has it, and whether dark letters are to be read on it. */
export const cssOf = (share: number): string => `rgb(${colourOf(share).join(' ')})`
export const isLight = (share: number): boolean => {
  const [red, green, blue] = colourOf(share).map(value => (value / 255) ** 2.2) as unknown as Colour
  // From this luminance on, black has the greater contrast.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18
}

/**
 * A pixel for each of `values`, rows of `width`. The greatest size has the whole colour; values of size 0 are white.
 */
export function pictureOf(values: Float32Array, width: number): Picture {
  let greatest = 0
  for (const value of values) if (Number.isFinite(value)) greatest = Math.max(greatest, Math.abs(value))
  const height = Math.floor(values.length / width)
  const pixels = new Uint8ClampedArray(4 * width * height)
  for (let n = 0; n < width * height; n++) {
    pixels.set([...colourOf(greatest > 0 ? values[n]! / greatest : values[n]!), 255], 4 * n)
  }
  return { width, height, pixels }
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
