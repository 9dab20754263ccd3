// A file that is read in parts: a blob, or what a server has at an address.
import { abortOf } from './abort.js'
import { sizeOf } from './missing.js'
import { BitNetError } from '../error.js'

/** The bytes that one request to a server asks for, at least, so that small reads share it. Reads of a disk are as large as asked for. */
const AHEAD = 8 << 20

/** A file that can be read in parts. */
export interface Parts {
  /** Its bytes. */
  readonly length: number
  /** The bytes from `begin` to before `end`, which are within the file. */
  read(begin: number, end: number, signal: AbortSignal): Promise<Uint8Array>
}

export const ofBlob = (blob: Blob): Parts => ({
  length: blob.size,
  async read(begin, end) {
    try {
      return new Uint8Array(await blob.slice(begin, end).arrayBuffer())
    } catch (cause) {
      throw new BitNetError('io', `could not read the file: ${(cause as Error).message}`, { cause })
    }
  }
})

/** Rejects with `http` if the server does not give parts, or of another file than before, and with `network`. */
export async function ofUrl(url: URL, signal: AbortSignal | undefined): Promise<Parts> {
  const first = await partOf(url, 0, AHEAD, undefined, signal)
  const { file } = first
  let held = { begin: 0, bytes: first.bytes }
  return {
    length: file.length,
    async read(begin, end, signal) {
      const within = begin >= held.begin && end <= held.begin + held.bytes.length
      if (!within) {
        const ahead = Math.min(file.length, Math.max(end, begin + AHEAD))
        held = { begin, bytes: (await partOf(url, begin, ahead, file, signal)).bytes }
      }
      return held.bytes.subarray(begin - held.begin, end - held.begin)
    }
  }
}

/** A file as its server describes it. At the next answer it may have another one. */
interface Served {
  length: number
  etag: string | null
  modified: string | null
}

const CHANGED = 'the file has changed since it was opened'

/** Whether the headers show that these are two files. A weak ETag may be another one for the same bytes. */
function isOther(one: Served, other: Served): boolean {
  if (one.length !== other.length) return true
  const isStrong = ({ etag }: Served) => etag?.startsWith('"')
  if (isStrong(one) && isStrong(other)) return one.etag !== other.etag
  return one.modified !== null && other.modified !== null && one.modified !== other.modified
}

/**
 * The bytes at `url` from `begin` to before `end`, or to the end of the file if `known` is missing and the file is shorter. With
 * `known`, they have to be of that file.
 */
async function partOf(
  url: URL, begin: number, end: number, known: Served | undefined, signal: AbortSignal | undefined
): Promise<{ bytes: Uint8Array<ArrayBuffer>, file: Served }> {
  const refused = (why: string) => new BitNetError('http', `could not fetch ${url}: ${why}`)
  // Ends the answer if not all of it is read.
  const ending = new AbortController()
  const either = abortOf(signal, ending.signal)
  try {
    const response = await fetch(url, { headers: { range: `bytes=${begin}-${end - 1}` }, signal: either.signal })
    if (response.status === 416 && known) throw refused(CHANGED)
    if (!response.ok) throw refused(`the server answered ${response.status}`)
    if (response.status !== 206) throw refused('the server does not give parts of it')
    const said = response.headers.get('content-range')
    const [from, last, all] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(said ?? '')?.slice(1).map(Number) ?? []
    if (said !== null && (from !== begin || last! >= end || last! < begin || !(last! < all!))) {
      throw refused(`the server gave other bytes than were asked for: ${said}`)
    }
    // A server of another origin hides this header, unless it says otherwise. The length of an answer to HEAD is never hidden.
    const length = all ?? known?.length ?? await sizeOf(url.href, either.signal)
    if (!Number.isSafeInteger(length)) throw refused('the server does not let this page see `Content-Range`')
    const { headers } = response
    const file = { length, etag: headers.get('etag'), modified: headers.get('last-modified') }
    if (known && isOther(file, known)) throw refused(CHANGED)
    const bytes = await exactly(response, Math.min(last === undefined ? end : last + 1, length) - begin)
    if (!bytes) throw refused('the server gave more or fewer bytes than it said')
    return { bytes, file }
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof BitNetError) throw cause
    throw new BitNetError('network', `could not fetch ${url}: ${(cause as Error).message}`, { cause })
  } finally {
    ending.abort()
    either.release()
  }
}

/** The body of an answer. Nothing if it is not `length` bytes long. A longer one is not read to its end. */
async function exactly(response: Response, length: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const bytes = new Uint8Array(length)
  const reader = response.body?.getReader()
  let filled = 0
  for (;;) {
    const { done, value } = await reader?.read() ?? { done: true, value: undefined }
    if (done) return filled === length ? bytes : undefined
    if (value.length > length - filled) return undefined
    bytes.set(value, filled)
    filled += value.length
  }
}
