// Streams in browsers that cannot transfer them. Fetched only there.
import { BitNetError } from '../error.js'

/** All of a stream. It is cancelled if `signal` aborts. */
export async function gathered(stream: ReadableStream<Uint8Array>, signal?: AbortSignal): Promise<Blob> {
  try {
    const bytes = stream.pipeThrough(new TransformStream<Uint8Array>(), signal ? { signal } : {})
    return await new Response(bytes).blob()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : cause
    throw new BitNetError('io', `could not read the stream: ${why}`, { cause })
  }
}
