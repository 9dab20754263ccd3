// Which of the modules for the CPU this browser can run, and how fast it will be.

/** The names of the modules, the fastest first. */
export const NAMES = ['relaxed', 'simd'] as const

export type Name = typeof NAMES[number]

/** The beginning of a module with a function that gives an i32. */
const BEGINNING = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10]

/** Modules with one instruction, each of which is valid where the module of its name is. */
const PROBES: Record<Name, number[]> = {
  // i8x16.relaxed_swizzle
  relaxed: [15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11],
  // i8x16.popcnt
  simd: [10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]
}

/** The modules that can run here, the fastest first. */
export const runnable = (): Name[] =>
  // Some browsers have no WebAssembly at all in their safest mode.
  typeof WebAssembly === 'undefined' ? [] : NAMES.filter(name =>
    WebAssembly.validate(Uint8Array.from([...BEGINNING, ...PROBES[name]])))

/** The reason why none can. */
export const NO_SIMD = 'the browser has no WebAssembly with SIMD, which the CPU needs'

/**
 * A small module with the inner loop of the module `simd`. `run(bytes)` multiplies the ternary weights in the first
 * `bytes` of its memory, four weights in each. Made of `kernel.wat` by binaryen's `wasm-as --enable-simd`.
 */
const KERNEL =
  'AGFzbQEAAAABBgFgAX8BfwMCAQAFAwEAIAcQAgZtZW1vcnkCAANydW4AAAqBAgH+AQIBfwV7/QwDAAMAAwADAAMAAwADAAMAIQL9DAEA/v8DAPz/BQD6' +
  '/wcA+P8hAwNAIAH9AAQAIQQgBSAEIAL9TiAD/boB/a4BIQUgBiAEQQj9jQEgAv1OIAP9ugH9rgEhBiAFIARBAv2NASAC/U4gA/26Af2uASEFIAYgBEEK' +
  '/Y0BIAL9TiAD/boB/a4BIQYgBSAEQQT9jQEgAv1OIAP9ugH9rgEhBSAGIARBDP2NASAC/U4gA/26Af2uASEGIAUgBEEO/Y0BIAP9ugH9rgEhBSAGIARB' +
  'Bv2NASAC/U4gA/26Af2uASEGIAFBEGoiASAASQ0ACyAFIAb9rgH9GwAL'

/** How often it runs. The fastest time counts; the first ones are slower, until the browser has compiled it well. */
const RUNS = 12

/** How much faster the module `relaxed` is. */
const GAIN = 1.4

/** The speed that each further thread adds, as a share of the first one's. A guess: below 1, because threads share the memory. */
const GAIN_OF_THREAD = 0.6

/**
 * Estimates the bytes of weights that so many threads compute in a second. It takes some 10 ms and times one thread. Real
 * models are slower: their weights are not in the processor's caches, and a page's other threads take their share.
 */
export async function bytesPerSecond(threads: number): Promise<number> {
  const bytes = Uint8Array.from(atob(KERNEL), char => char.charCodeAt(0))
  const { instance } = await WebAssembly.instantiate(bytes)
  const { memory, run } = instance.exports as { memory: WebAssembly.Memory, run(bytes: number): number }
  const { byteLength } = memory.buffer
  let fastest = Infinity
  for (let n = 0; n < RUNS; n++) {
    const start = performance.now()
    run(byteLength)
    fastest = Math.min(fastest, performance.now() - start)
  }
  // Some browsers count whole milliseconds only.
  const gain = (runnable()[0] === 'relaxed' ? GAIN : 1) * (1 + GAIN_OF_THREAD * (threads - 1))
  return byteLength / Math.max(fastest, 0.1) * 1000 * gain
}
