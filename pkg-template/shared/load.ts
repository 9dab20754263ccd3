// A load that looks for its file in Cross-Origin Storage before it asks the network. Fetched only where
// the browser has that.
import { BitNetError } from '../error.js'
import type { Methods, PortableSource, Streaming, Transport } from '../protocol/messages.js'
import type { ErrorCode, ModelInfo, Progress, ProgressNote } from '../types.js'
import { digitsOf, find, offer, reason } from './storage.js'
import type { Hash } from './storage.js'
import { storedFile } from './stored.js'

type Options = Methods['load']['args'][1]

/** The values of `cache` that do not ask for the server's file. Of others, the load says if they are wrong. */
const LOOKING: readonly unknown[] = ['use', 'off', 'only'] satisfies Options['cache'][]
/** The failures of this site's own storage. Another copy of the file may be as good as downloading it. */
const NOT_STORED: readonly ErrorCode[] = ['not-cached', 'storage', 'storage-full', 'integrity']
/** The failures of a file from Cross-Origin Storage that is not the one, or cannot be read. */
const NO_GOOD: readonly ErrorCode[] = ['integrity', 'io']

/**
 * Loads as `transport.load` does, in this order: the model that is stored for this site; the file in
 * Cross-Origin Storage; the network. With `offers`, puts a download there once it is stored, which
 * `stored` tells. If `options` ask for the server's file, nothing is looked for.
 *
 * A file that is found is hashed before it is used. It is not stored again, and `options.cache` becomes
 * `off`.
 */
export async function load(
  transport: Transport, source: PortableSource, options: Options,
  { onItem, signal }: Streaming<'load'>, offers: boolean, stored: Promise<void>
): Promise<ModelInfo> {
  const { cache = 'use', integrity = '' } = options
  const url = addressOf(source)
  const hash = hashOf(integrity)
  if (!url || !hash) return transport.load(source, options, { onItem, signal })

  const told = new Reports(transport, onItem)
  const attempt = (from: PortableSource, how: Options) => {
    signal?.throwIfAborted()
    return transport.load(from, how, { onItem: told.onItem, signal })
  }
  if (LOOKING.includes(cache)) {
    const own = cache !== 'off' && await attempt(source, { ...options, cache: 'only' }).catch(failed(NOT_STORED))
    if (own && !(own instanceof BitNetError)) return own
    const file = await find(hash)
    if (typeof file === 'string') told.note({ kind: 'not-shared', why: file })
    else if (file) {
      told.begin(file.size)
      const info = await attempt(file, { ...options, cache: 'off' }).catch(failed(NO_GOOD))
      if (!(info instanceof BitNetError)) {
        options.cache = 'off'
        return info
      }
      told.giveUp({ kind: 'not-shared', why: info.message })
    }
    if (cache === 'only') throw own
  }
  const info = await attempt(source, options)
  if (offers) void stored.then(() => offerTo(told, url, hash))
  return info
}

/** Offers a file that was downloaded and stored. */
async function offerTo(told: Reports, url: string, hash: Hash): Promise<void> {
  // The model of another tab, or of this site's storage, is not this load's to offer.
  if (told.isEnded || told.isFromCache) return
  told.loaded()
  let note: ProgressNote = { kind: 'offered' }
  try {
    const file = await storedFile(url, hash.value)
    if (file) await offer(hash, file, () => told.isEnded)
    else note = { kind: 'not-shared', why: 'the file is not stored on this device' }
  } catch (error) {
    note = { kind: 'not-shared', why: reason(error) }
  }
  if (!told.isEnded) told.note(note)
}

/** Gives an error with one of `codes` as a result. Any other ends the load. */
const failed = (codes: readonly ErrorCode[]) => (error: unknown): BitNetError => {
  if (error instanceof BitNetError && codes.includes(error.code)) return error
  throw error
}

/** The reports of several attempts as those of one load, with the notes of its file. */
class Reports {
  /** Whether the model answers no more calls. */
  isEnded = false
  /** The last report of the attempt, without our notes. */
  #last: Progress = {
    phase: 'download', loaded: 0, total: 0, fraction: 0, fromCache: false, bytesPerSecond: 0, notes: []
  }
  #fraction = 0
  #notes: ProgressNote[] = []
  /** Whether a file from Cross-Origin Storage is being read. */
  #isShared = false
  #tell: (progress: Progress) => void
  /** Says that the load has resolved. */
  loaded: () => void

  constructor(transport: Transport, onItem: ((progress: Progress) => void) | undefined) {
    const { onStoring, onEnd } = transport
    this.#tell = progress => onItem?.(progress)
    // Once the load has resolved, its callback takes no more reports.
    this.loaded = () => { this.#tell = progress => onStoring?.(progress) }
    transport.onStoring = progress => {
      this.loaded()
      this.onItem(progress)
    }
    transport.onEnd = why => {
      this.isEnded = true
      onEnd?.(why)
    }
  }

  /** Whether the bytes came from this site's storage. */
  get isFromCache(): boolean {
    return this.#last.fromCache
  }

  onItem = (progress: Progress): void => {
    this.#last = progress
    // Nothing is reported before its hash is known.
    if (this.#isShared && !this.#notes.some(({ kind }) => kind === 'shared')) this.#notes.push({ kind: 'shared' })
    this.#report()
  }

  note(note: ProgressNote): void {
    this.#notes.push(note)
    this.#report()
  }

  /** A file of `total` bytes was found, and is hashed now. */
  begin(total: number): void {
    this.#isShared = true
    this.#last = { ...this.#last, loaded: 0, total }
    this.#report()
  }

  /** It is not the right one, and was not used. */
  giveUp(note: ProgressNote): void {
    this.#isShared = false
    this.#notes = this.#notes.filter(({ kind }) => kind !== 'shared')
    this.#last = { ...this.#last, loaded: 0, total: 0 }
    this.note(note)
  }

  #report(): void {
    const { phase, notes } = this.#last
    this.#fraction = Math.max(this.#fraction, this.#last.fraction)
    const isReading = this.#isShared && (phase === 'upload' || phase === 'download')
    this.#tell({
      ...this.#last,
      phase: isReading ? 'cache' : phase,
      fromCache: this.#isShared || this.#last.fromCache,
      fraction: this.#fraction,
      notes: [...this.#notes, ...notes]
    })
  }
}

/** The address under which a source is stored; undefined if it has none that other sites may know. */
function addressOf(source: PortableSource): string | undefined {
  const isRequest = typeof source === 'object' && 'request' in source
  const url = typeof source === 'string' ? source : isRequest ? source.request.url : ''
  return /^https?:/.test(url) ? url.replace(/#.*/, '') : undefined
}

/** The hash in `integrity`; undefined if that is wrong, which the load then says. */
function hashOf(integrity: string): Hash | undefined {
  try {
    const value = digitsOf(/^sha256-(.*)$/.exec(integrity)?.[1] ?? '')
    return value.length === 64 ? { algorithm: 'SHA-256', value } : undefined
  } catch {
    return undefined
  }
}
