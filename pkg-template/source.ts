// Sources as a page gives them, to sources that can cross to a worker.
import { BitNetError } from './error.js'
import type { PortableRequest, PortableSource } from './protocol.js'
import type { Source } from './types.js'

/** Relative addresses mean the page's, which a worker does not know. */
export function portable(source: Source): PortableSource {
  if (typeof source === 'string' || source instanceof URL) return absolute(source)
  if (source instanceof Request) return { request: requestParts(source) }
  if (source instanceof ArrayBuffer) return bytes(source)
  return source
}

function bytes(buffer: ArrayBuffer): Uint8Array {
  try {
    return new Uint8Array(buffer)
  } catch {
    throw new BitNetError('bad-option', 'bad option `source`: the ArrayBuffer is detached, its bytes were transferred elsewhere')
  }
}

/** The source of a call that has arrived. */
export const received = (source: PortableSource): Exclude<Source, URL> =>
  isRequest(source) ? new Request(source.request.url, source.request.init) : source

/**
 * A source as it is posted. Bytes go as a blob: a message would copy the whole buffer that they
 * are a part of. A stream moves where streams can, and is read to its end where they cannot.
 */
export async function postable(source: PortableSource): Promise<PortableSource> {
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) return new Blob([source as BlobPart])
  if (source instanceof ReadableStream && !streamsMove()) return gathered(source)
  return source
}

async function gathered(stream: ReadableStream<Uint8Array>): Promise<Blob> {
  try {
    return await new Response(stream).blob()
  } catch (error) {
    throw new BitNetError('network', `could not read the stream: ${error instanceof Error ? error.message : error}`)
  }
}

function streamsMove(): boolean {
  try {
    const stream = new ReadableStream()
    structuredClone(stream, { transfer: [stream] })
    return true
  } catch {
    return false
  }
}

const isRequest = (source: PortableSource): source is { request: PortableRequest } =>
  typeof source === 'object' && source !== null && 'request' in source

function absolute(url: string | URL): string {
  try {
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href
  } catch {
    throw new BitNetError('bad-option', `bad option \`source\`: \`${url}\` is not a valid URL`)
  }
}

function requestParts(request: Request): PortableRequest {
  if (request.method !== 'GET') throw new BitNetError('bad-option', 'bad option `source`: a Request must be a GET')
  const { url, cache, credentials, integrity, mode, redirect, referrerPolicy } = request
  const init: RequestInit = { cache, credentials, integrity, redirect, referrerPolicy, headers: [...request.headers] }
  // A page's own navigation cannot be repeated, and an opaque response has no bytes to read.
  if (mode === 'same-origin') init.mode = mode
  return { url, init }
}
