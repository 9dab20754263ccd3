// `tritloom/weights`: looks at the weights of a GGUF file, without a GPU and without loading a model.
import { absolute } from './address.js'
import { badOption, checkCallback, checkChoice, checkCount, checkOptions, checkSignal, checkText, report, signalOf } from './check.js'
import { BitNetError } from './error.js'
import { crate } from './page/cache.js'
import { abortOf } from './page/abort.js'
import type { WasmFile } from './tritloom.js'
import type { AbortOptions, FileTensor, TensorStatistics } from './types.js'

export type { FileTensor, NumberSpread, TensorStatistics } from './types.js'

/** Bytes that are read of an address at a time, if so many are left. A disk needs no more than is asked for. */
const AHEAD = 8 << 20

/** Options of `WeightFile.statistics`. */
export interface StatisticsOptions extends AbortOptions {
  /** Called with the share of the tensor's bytes that were read, up to 1. */
  onProgress?: (share: number) => void
}

/** Options of `WeightFile.rows`. */
export interface RowsOptions extends AbortOptions {
  /** The order of I2_S codes, as the option of `BitNet.load` says it. Default: `x86`. */
  i2sLayout?: 'x86' | 'arm'
}

/**
 * Opens a GGUF file: its header is read, and a tensor when it is asked for. A server has to answer requests for parts of it.
 *
 * Rejects with `bad-option` for another source, `bad-gguf` if it is no such file, `io` if it cannot be read, `http` and
 * `network` if the server does not give its parts, `missing-feature` without WebAssembly, and with the reason of `signal`.
 */
export async function openWeights(source: Blob | string | URL, options: AbortOptions = {}): Promise<WeightFile> {
  const signal = signalOf(options)
  signal?.throwIfAborted()
  const parts = source instanceof Blob ? ofBlob(source) : await ofUrl(absolute('source', source), signal)
  const reading = new Reading(parts)
  const file = await reading.run(signal, async () => {
    const { WasmFile } = await crate()
    return WasmFile.open(parts.length, reading.read)
  })
  return new OpenFile(file, reading)
}

/** An open file. Its calls run one after the other. */
export interface WeightFile {
  /** The model's name in the file; empty if it has none. */
  readonly name: string
  /** Its architecture in the file; empty if it has none. */
  readonly architecture: string
  /** Bytes of the file. */
  readonly bytes: number
  /** Its tensors, in the file's order. */
  readonly tensors: readonly FileTensor[]
  /**
   * The contents of a tensor in figures. Reads all of it.
   *
   * Rejects with `bad-option` if there is none of this name, `bad-gguf` for a value that none can be, as `openWeights` if it
   * cannot be read, and with the reason of `signal`.
   */
  statistics(name: string, options?: StatisticsOptions): Promise<TensorStatistics>
  /**
   * The values of the rows from `begin` to before `end`, one row after the other; of a ternary tensor -1, 0 and +1 times their
   * scale. A tensor of one dimension has one row.
   *
   * Rejects as `statistics` does, and with `bad-option` for rows that there are not, for more than 16,777,216 values, and for
   * a type that this package does not compute with.
   */
  rows(name: string, begin: number, end: number, options?: RowsOptions): Promise<Float32Array>
}

class OpenFile implements WeightFile {
  readonly name: string
  readonly architecture: string
  readonly bytes: number
  readonly tensors: readonly FileTensor[]
  readonly #file: WasmFile
  readonly #reading: Reading

  constructor(file: WasmFile, reading: Reading) {
    const [name = '', architecture = ''] = file.names()
    this.name = name
    this.architecture = architecture
    this.bytes = reading.length
    this.tensors = file.tensors()
    this.#file = file
    this.#reading = reading
  }

  async statistics(name: string, options: StatisticsOptions = {}): Promise<TensorStatistics> {
    checkOptions(options, ['signal', 'onProgress'])
    const { signal, onProgress } = options
    checkSignal(signal)
    checkCallback('onProgress', onProgress)
    const { bytes } = this.#tensor(name)
    const onRead = (done: number) => report(onProgress, Math.min(1, done / bytes))
    return this.#reading.run(signal, () => this.#file.statistics(name), onRead)
  }

  async rows(name: string, begin: number, end: number, options: RowsOptions = {}): Promise<Float32Array> {
    checkOptions(options, ['signal', 'i2sLayout'])
    const { signal, i2sLayout = 'x86' } = options
    checkSignal(signal)
    checkCount('begin', begin)
    checkCount('end', end)
    checkChoice('i2sLayout', i2sLayout, ['x86', 'arm'])
    this.#tensor(name)
    return this.#reading.run(signal, () => this.#file.rows(name, begin, end, i2sLayout === 'arm'))
  }

  #tensor(name: string): FileTensor {
    checkText('name', name)
    const found = this.tensors.find(tensor => tensor.name === name)
    if (!found) throw badOption('name', `there is no tensor \`${name}\``)
    return found
  }
}

/** A file that can be read in parts. */
interface Parts {
  length: number
  read(begin: number, end: number, signal: AbortSignal): Promise<Uint8Array>
}

/** The calls to a file, one after the other. */
class Reading {
  readonly length: number
  readonly #parts: Parts
  #last: Promise<unknown> = Promise.resolve()
  #signal = new AbortController().signal
  #onRead: ((bytes: number) => void) | undefined
  #done = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.length = parts.length
  }

  /** Reads a part for the call that runs. */
  readonly read = async (begin: number, end: number): Promise<Uint8Array> => {
    this.#signal.throwIfAborted()
    const bytes = await this.#parts.read(begin, end, this.#signal)
    this.#onRead?.(this.#done += bytes.length)
    return bytes
  }

  /** Runs `work` after the calls before it. */
  run<T>(signal: AbortSignal | undefined, work: () => Promise<T>, onRead?: (bytes: number) => void): Promise<T> {
    const aborted = abortOf(signal)
    const now = async () => {
      aborted.signal.throwIfAborted()
      this.#signal = aborted.signal
      this.#onRead = onRead
      this.#done = 0
      return work()
    }
    const result = this.#last.then(now)
    // The next call waits for this one even if it was aborted, because it may still be reading.
    this.#last = result.catch(() => {})
    return Promise.race([result, aborted.promise]).finally(aborted.release)
  }
}

const ofBlob = (blob: Blob): Parts => ({
  length: blob.size,
  async read(begin, end) {
    try {
      return new Uint8Array(await blob.slice(begin, end).arrayBuffer())
    } catch (cause) {
      throw new BitNetError('io', `could not read the file: ${(cause as Error).message}`, { cause })
    }
  }
})

async function ofUrl(url: URL, signal: AbortSignal | undefined): Promise<Parts> {
  let held = { begin: 0, bytes: new Uint8Array() }
  const first = await part(url, 0, AHEAD, signal)
  held.bytes = first.bytes
  return {
    length: first.length,
    async read(begin, end, signal) {
      const within = begin >= held.begin && end <= held.begin + held.bytes.length
      if (!within) held = { begin, bytes: (await part(url, begin, Math.max(end, begin + AHEAD), signal)).bytes }
      return held.bytes.subarray(begin - held.begin, end - held.begin)
    }
  }
}

/** A part of what is at `url`, which may end earlier, and the length of the whole. */
async function part(
  url: URL, begin: number, end: number, signal: AbortSignal | undefined
): Promise<{ bytes: Uint8Array<ArrayBuffer>, length: number }> {
  let response: Response
  try {
    response = await fetch(url, { headers: { range: `bytes=${begin}-${end - 1}` }, signal: signal ?? null })
    const length = Number(/\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1] ?? NaN)
    if (response.status === 206 && length > 0) return { bytes: new Uint8Array(await response.arrayBuffer()), length }
  } catch (cause) {
    signal?.throwIfAborted()
    throw new BitNetError('network', `could not fetch ${url}: ${(cause as Error).message}`, { cause })
  }
  void response.body?.cancel()
  const why = response.ok ? 'the server does not give parts of it' : `the server answered ${response.status}`
  throw new BitNetError('http', `could not fetch ${url}: ${why}`)
}
