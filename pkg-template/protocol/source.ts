// Sources as a page gives them, and as they are posted to a worker. Only the page needs this file.
import { absolute } from '../address.js'
import { badOption } from '../check.js'
import { BitNetError, fetched } from '../error.js'
import type { PortableRequest, PortableSource } from './messages.js'
import type { Source } from '../types.js'

/** A source that no longer depends on the page: addresses are absolute, requests taken apart. */
export function portable(source: Source): PortableSource {
  if (typeof source === 'string' || source instanceof URL) return absolute('source', source).href
  if (source instanceof Request) return { request: requestParts(source) }
  if (source instanceof ArrayBuffer) return view(source)
  if (source instanceof Uint8Array) {
    view(source.buffer)
    // Browsers cannot read shared memory everywhere that a load needs the bytes, so they are copied
    // now.
    if (!(source.buffer instanceof ArrayBuffer)) return source.slice()
  }
  return source
}

/** All bytes of a buffer. Refuses a detached buffer, whose bytes were transferred elsewhere. */
function view(buffer: ArrayBufferLike): Uint8Array {
  try {
    return new Uint8Array(buffer)
  } catch {
    throw new BitNetError('io', 'could not read the array of the model: it was detached')
  }
}

/**
 * A source in the form that is posted. Bytes are posted as a `Blob`, because posting a view would
 * copy the whole buffer that it belongs to. A stream is transferred. In browsers that cannot
 * transfer streams, it is read to its end first, or cancelled if `signal` aborts.
 */
export async function postable(
  source: PortableSource, signal?: AbortSignal
): Promise<PortableSource> {
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) {
    return new Blob([source as BlobPart])
  }
  if (source instanceof ReadableStream && !canTransferStreams()) {
    return (await fetched(() => import('./gathered.js'))).gathered(source, signal)
  }
  return source
}

function canTransferStreams(): boolean {
  try {
    const stream = new ReadableStream()
    structuredClone(stream, { transfer: [stream] })
    return true
  } catch {
    return false
  }
}

function requestParts(request: Request): PortableRequest {
  if (request.method !== 'GET') throw badOption('source', 'a Request must be a GET')
  const { url, cache, credentials, integrity, mode, redirect, referrerPolicy } = request
  const headers = [...request.headers]
  const init: RequestInit = { cache, credentials, integrity, redirect, referrerPolicy, headers }
  // Other modes are left to the default. `navigate` cannot be fetched again, and the response to
  // `no-cors` has no readable bytes.
  if (mode === 'same-origin') init.mode = mode
  return { url, init }
}
