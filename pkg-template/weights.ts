// `tritloom/weights`: looks at the weights of a GGUF file, without a GPU and without loading a model.
import { absolute } from './address.js'
import { badOption, checkCallback, checkChoice, checkCount, checkOptions, checkSignal, checkText, report, signalOf } from './check.js'
import { abortOf, unlessAborted } from './page/abort.js'
import { crate } from './page/cache.js'
import { ofBlob, ofUrl } from './page/parts.js'
import type { Parts } from './page/parts.js'
import { platform } from './platform.js'
import type { WasmFile } from './tritloom.js'
import type { AbortOptions, FileTensor, TensorStatistics } from './types.js'

export type { FileTensor, NumberSpread, TensorStatistics } from './types.js'

/** The most values that `WeightFile.rows` gives at a time. */
export const MAX_VALUES = 16_777_216

/** Options of `WeightFile.statistics`. */
export interface StatisticsOptions extends AbortOptions {
  /** Called with the share of the tensor's bytes that were read, at last 1. Only a type with scales is read. */
  onProgress?: (share: number) => void
}

/** Options of `WeightFile.rows`. */
export interface RowsOptions extends AbortOptions {
  /** The order of I2_S codes, as the option of `BitNet.load` says it. Default: `x86`. */
  i2sLayout?: 'x86' | 'arm'
}

/**
 * Opens a GGUF file: its header is read, and a tensor when it is asked for. Outside of a browser the source may be a path. Of an
 * address 8 MiB are read at a time, and nothing is stored. Its server has to answer requests for parts of the file, and one of
 * another origin has to let the page see `Content-Range`, or answer `HEAD`.
 *
 * Rejects with `bad-option` for another source, `bad-gguf` if it is no such file, `io` if it cannot be read, `http` and
 * `network` if the server does not give its parts, `missing-feature` without WebAssembly, and with the reason of `signal`.
 */
export async function openWeights(source: Blob | string | URL, options: AbortOptions = {}): Promise<WeightFile> {
  const signal = signalOf(options)
  signal?.throwIfAborted()
  const parts = await partsOf(source, signal)
  const reading = new Reading(parts)
  const file = await reading.run(signal, async () => {
    const { WasmFile } = await crate()
    return WasmFile.open(parts.length, reading.read)
  })
  return new OpenFile(file, reading)
}

async function partsOf(source: Blob | string | URL, signal: AbortSignal | undefined): Promise<Parts> {
  if (source instanceof Blob) return ofBlob(source)
  const url = absolute('source', source)
  const { file } = platform
  if (url.protocol !== 'file:' || !file) return ofUrl(url, signal)
  return ofBlob(await unlessAborted(signal, () => file(url.href)))
}

/** An open file. Its calls run one after the other. If a server's file is another one than before, they reject with `http`. */
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
   * scale. The first row is 0. A row has `shape[0]` values, and the tensor as many rows as the product of its further dimensions: a
   * tensor of one dimension has one.
   *
   * Rejects as `statistics` does, and with `bad-option` for rows that there are not, for more than `MAX_VALUES` values, and for
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
    let told = 0
    const tell = (share: number) => report(onProgress, told = share)
    const found = await this.#reading.run(signal, () => this.#file.statistics(name), done => tell(Math.min(1, done / bytes)))
    if (told < 1) tell(1)
    return found
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
    // A blob's part comes after an abort too.
    this.#signal.throwIfAborted()
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
