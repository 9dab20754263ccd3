// A file as a `Blob`. Node's own function for this is experimental, and those of Deno and Bun are others.
import { open, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { BitNetError } from '../error.js'

/** The bytes that a stream reads at a time, unless its reader brings an array. */
const STEP = 4 << 20

/** A range of a file. Its bytes are read when they are asked for. */
export class FileBlob extends Blob {
  #path: string
  /** When the file was last changed before it was opened. */
  #changed: number
  #start: number
  #end: number

  /** Rejects with `io` if it is no file that can be read. */
  static async open(url: string): Promise<FileBlob> {
    try {
      const path = fileURLToPath(url)
      const found = await stat(path)
      if (!found.isFile()) throw new Error('it is no file')
      await (await open(path)).close()
      return new FileBlob(path, found.mtimeMs, 0, found.size)
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : cause
      throw new BitNetError('io', `could not read ${url}: ${why}`, { cause })
    }
  }

  private constructor(path: string, changed: number, start: number, end: number) {
    super()
    this.#path = path
    this.#changed = changed
    this.#start = start
    this.#end = end
  }

  override get size(): number {
    return this.#end - this.#start
  }

  override slice(start = 0, end = this.size): FileBlob {
    const place = (at: number) => {
      const from = at < 0 ? this.#end : this.#start
      return Math.min(this.#end, Math.max(this.#start, from + at))
    }
    return new FileBlob(this.#path, this.#changed, place(start), Math.max(place(start), place(end)))
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size)
    for (let at = 0; at < bytes.length;) at += await this.#read(bytes.subarray(at), at)
    return bytes.buffer
  }

  override async text(): Promise<string> {
    return new TextDecoder().decode(await this.arrayBuffer())
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    let at = 0
    return new ReadableStream({
      type: 'bytes',
      pull: async controller => {
        const asked = controller.byobRequest
        const rest = this.size - at
        if (rest === 0) {
          controller.close()
          asked?.respond(0)
          return
        }
        const view = asked?.view
        const room = view ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : new Uint8Array(Math.min(STEP, rest))
        const length = await this.#read(room.subarray(0, rest), at)
        at += length
        if (asked) asked.respond(length)
        else controller.enqueue(room.subarray(0, length))
      }
    })
  }

  /** Reads bytes from `at` on, as many as come at once but at least one. */
  async #read(into: Uint8Array, at: number): Promise<number> {
    const file = await open(this.#path)
    try {
      if ((await file.stat()).mtimeMs !== this.#changed) throw new Error('the file has changed')
      const { bytesRead } = await file.read(into, 0, into.length, this.#start + at)
      if (bytesRead === 0) throw new Error('the file has become shorter')
      return bytesRead
    } finally {
      await file.close()
    }
  }
}
