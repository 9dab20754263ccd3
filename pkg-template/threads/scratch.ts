// Bytes for which main memory is too short, in a file of the browser's own file system (OPFS). It is deleted when its
// thread has ended. Only workers have handles that read and write synchronously.
import { folder, SCRATCH, sweep } from './disk.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
interface Handle {
  read(into: Uint8Array, options: { at: number }): number
  write(bytes: Uint8Array, options: { at: number }): number
  truncate(size: number): void
  getSize(): number
  close(): void
}
interface HandleSource extends FileSystemFileHandle {
  createSyncAccessHandle(): Promise<Handle>
}

/** The errors of a file that another tab has deleted, or is deleting. */
const DELETED = ['NotFoundError', 'NoModificationAllowedError']

export class Scratch {
  #handle: Handle

  private constructor(handle: Handle) {
    this.#handle = handle
  }

  /** Opens a file of `size` zeros. Rejects if the browser has no such files, or no room for this one. */
  static async open(size: number): Promise<Scratch> {
    const all = await folder(true)
    await sweep()
    const handle = await opened(all)
    try {
      handle.truncate(size)
      // A private window of Chromium reports this as done even if it does not fit.
      if (handle.getSize() < size) throw new DOMException(`${size} bytes do not fit`, 'QuotaExceededError')
    } catch (error) {
      new Scratch(handle).close()
      throw error
    }
    return new Scratch(handle)
  }

  /** Fills `into` with bytes from `at` on. */
  read(into: Uint8Array, at: number): void {
    const length = this.#handle.read(into, { at })
    if (length < into.length) throw new Error(`${length} of ${into.length} bytes could be read`)
  }

  write(bytes: Uint8Array, at: number): void {
    const length = this.#handle.write(bytes, { at })
    if (length < bytes.length) throw new DOMException(`${length} of ${bytes.length} bytes fit`, 'QuotaExceededError')
  }

  /** After this nothing may be read or written. */
  close(): void {
    this.#handle.close()
    void sweep().catch(() => {})
  }
}

/** Opens an empty file. Another tab may delete the file before it is open, as one of an ended thread. Then it is made again. */
async function opened(all: FileSystemDirectoryHandle): Promise<Handle> {
  for (let triesLeft = 3; ; triesLeft--) {
    const file = await all.getFileHandle(SCRATCH + crypto.randomUUID(), { create: true })
    try {
      return await (file as HandleSource).createSyncAccessHandle()
    } catch (error) {
      await sweep()
      if (triesLeft === 0 || !(error instanceof DOMException && DELETED.includes(error.name))) throw error
    }
  }
}
