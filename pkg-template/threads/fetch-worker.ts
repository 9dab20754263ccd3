// A thread that makes requests and reads their responses. A browser makes a new array for all bytes
// that it receives. On a fast connection a thread needs as much time for this as for all the rest
// of a load.
import type { Asked, Filled, Order, Report } from './fetching.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
const scope = globalThis as unknown as {
  postMessage(message: 'running'): void
  addEventListener(type: 'message', listener: (event: MessageEvent<Asked>) => void): void
}

/** The most bytes that are read at a time. */
const STEP = 512 << 10
/** Free arrays of `STEP` bytes. */
const steps: ArrayBuffer[] = []

scope.addEventListener('message', ({ data }) => answer(data))
if (hasByteStreams()) scope.postMessage('running')

function hasByteStreams(): boolean {
  try {
    new Response('').body!.getReader({ mode: 'byob' })
    return true
  } catch {
    return false
  }
}

function answer({ url, headers, patience, port }: Asked): void {
  const controller = new AbortController()
  const { signal } = controller
  const report = (report: Report, transfer: Transferable[] = []) => port.postMessage(report, transfer)
  const reader = fetch(url, { headers, signal, cache: 'no-store' }).then(({ status, type, headers, body }) => {
    report({ head: { status, type, headers: [...headers] } })
    return body!.getReader({ mode: 'byob' })
  })
  let last: Promise<unknown> = reader.catch(() => report('failed'))
  port.onmessage = ({ data: order }: MessageEvent<Order>) => {
    if (!order) {
      controller.abort()
      port.close()
      return
    }
    last = last.then(async () => {
      const slow = setTimeout(() => controller.abort(), patience)
      const filled = await fill(order, reader)
      clearTimeout(slow)
      // Bytes that come from now on would be taken for the next bytes.
      if (filled.length < order.length) controller.abort()
      report(filled, [filled.array])
    })
  }
}

/** Reads into the array until it is full or the stream ends. */
async function fill(
  { array, length: wanted }: NonNullable<Order>, stream: Promise<ReadableStreamBYOBReader>
): Promise<Filled> {
  const bytes = new Uint8Array(array, 0, wanted)
  let length = 0
  try {
    const reader = await stream
    while (length < wanted) {
      // If a read fails, the stream keeps its array. So bytes that have come are in another array.
      const step = steps.pop() ?? new ArrayBuffer(STEP)
      const most = Math.min(STEP, wanted - length)
      const { done, value } = await reader.read(new Uint8Array(step, 0, most))
      if (value) {
        bytes.set(value, length)
        length += value.length
        steps.push(value.buffer)
      }
      if (done) break
    }
  } catch {
    // The thread that ordered the bytes asks for the rest in another way.
  }
  return { array, length }
}
