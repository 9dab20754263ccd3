// Streams of chunks: read in the page, or as server-sent events.

/** Chunks that `controller` stops. Reading them then ends. */
export type Chunks<Chunk> = AsyncGenerator<Chunk, void, undefined> & { controller: AbortController }

/** How a kind of stream is written. Each event is its lines, without the empty one after them. */
export interface Wire<Chunk> {
  chunk(chunk: Chunk): string
  /** The event of a failure. `last` is the last chunk that came before. */
  failure(error: unknown, last: Chunk | undefined): string
  /** The event after the last chunk, if there is one. */
  end?: string
}

/**
 * Begins a stream of the chunks that `from` makes until its signal aborts. Resolves once the first
 * chunk is there, and rejects if none can come.
 */
export async function begin<Chunk>(
  from: (stop: AbortSignal) => AsyncGenerator<Chunk, void, undefined>,
  signal: AbortSignal | undefined
): Promise<Chunks<Chunk>> {
  const controller = new AbortController()
  const stop = signal ? AbortSignal.any([signal, controller.signal]) : controller.signal
  const rest = from(stop)
  const first = await rest.next()
  const stream = resumed(first, rest, stop)
  // If a generator is returned before it was asked for a chunk, it skips its `finally`.
  const leave = stream.return.bind(stream)
  const end = () => {
    controller.abort()
    return leave()
  }
  return Object.assign(stream, { controller, return: end })
}

async function* resumed<Chunk>(
  first: IteratorResult<Chunk, void>, rest: AsyncGenerator<Chunk, void, undefined>, stop: AbortSignal
): AsyncGenerator<Chunk, void, undefined> {
  try {
    if (!first.done) yield first.value
    yield* rest
  } catch (error) {
    if (!stop.aborted) throw error
  } finally {
    await rest.return()
  }
}

/** Chunks as server-sent events. Cancelling the stream stops the model. */
export function events<Chunk>(
  from: Chunks<Chunk>, wire: Wire<Chunk>, signal: AbortSignal
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const event = (lines: string) => encoder.encode(`${lines}\n\n`)
  let last: Chunk | undefined
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await from.next()
        if (!done) {
          last = value
          return controller.enqueue(event(wire.chunk(value)))
        }
        signal.throwIfAborted()
        if (wire.end) controller.enqueue(event(wire.end))
      } catch (error) {
        if (signal.aborted) return controller.error(signal.reason)
        controller.enqueue(event(wire.failure(error, last)))
      }
      controller.close()
    },
    cancel() {
      from.controller.abort()
    }
  })
}
