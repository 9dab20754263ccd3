// The thread that reads, writes and hashes stored bytes. Only workers have handles that read and
// write synchronously, and computing a hash keeps its thread busy. It gives one answer to each
// question, in order.
import type { DiskReply, DiskTask } from './disk.js'
import { holdLock } from './life.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
interface Handle {
  read(into: Uint8Array, options: { at: number }): number
  write(bytes: Uint8Array, options: { at: number }): number
  getSize(): number
  flush(): void
  close(): void
}
interface HandleSource extends FileSystemFileHandle {
  createSyncAccessHandle(options: { mode: string }): Promise<Handle>
}
const scope = globalThis as unknown as {
  postMessage(message: DiskReply, transfer: Transferable[]): void
  addEventListener(type: 'message', listener: (event: MessageEvent<DiskTask>) => void): void
}

/** The open file. One is enough, because a load works on one file at a time. */
let open: { name: string, handle: Handle, written: boolean } | undefined

let last = Promise.resolve()
scope.addEventListener('message', ({ data }) => { last = last.then(() => answer(data)) })

async function answer(question: DiskTask): Promise<void> {
  const { id } = question
  const array = 'array' in question ? question.array : undefined
  const transfer = array ? [array] : []
  try {
    const result = await perform(question)
    scope.postMessage({ id, array, ...result }, transfer)
  } catch (error) {
    const failed = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    scope.postMessage({ id, array, failed }, transfer)
  }
}

async function perform(question: DiskTask): Promise<Omit<DiskReply, 'id' | 'array'>> {
  switch (question.kind) {
    case 'hello':
      if (!('createSyncAccessHandle' in FileSystemFileHandle.prototype)) {
        throw new Error('there are no handles here')
      }
      return { lock: await holdLock('disk') }
    case 'read': {
      const bytes = new Uint8Array(question.array, 0, question.length)
      const length = await read(question.name, bytes, question.start)
      return { length, ...await hash(bytes.subarray(0, length)) }
    }
    case 'write': {
      const bytes = new Uint8Array(question.array, 0, question.length)
      const handle = await opened(question.name, true)
      const length = handle.write(bytes, { at: question.start })
      if (open) open.written = true
      // A private window of Chromium reports a write as done even if it does not fit.
      if (length < bytes.length || handle.getSize() < question.start + length) {
        throw new DOMException(`${length} of ${bytes.length} bytes fit`, 'QuotaExceededError')
      }
      return { length }
    }
    case 'hash':
      return hash(new Uint8Array(question.array, 0, question.length))
    case 'flush':
      if (open?.name === question.name) flush()
      return {}
    case 'close':
      if (open?.name === question.name) close()
      return {}
  }
}

const hash = async (bytes: Uint8Array<ArrayBuffer>) =>
  ({ sha256: await crypto.subtle.digest('SHA-256', bytes) })

async function read(name: string, into: Uint8Array, at: number): Promise<number> {
  const handle = await opened(name, false).catch(() => undefined)
  if (handle) return handle.read(into, { at })
  // Another thread has it open, and in this browser a handle shuts others out.
  const blob = await (await fileHandle(name, false)).getFile()
  const bytes = new Uint8Array(await blob.slice(at, at + into.length).arrayBuffer())
  into.set(bytes)
  return bytes.length
}

async function opened(name: string, create: boolean): Promise<Handle> {
  if (open?.name === name) return open.handle
  close()
  const file = await fileHandle(name, create)
  // Other threads may have it open too. Records and locks keep writers apart, and keep readers from
  // bytes that are not written yet.
  const handle = await file.createSyncAccessHandle({ mode: 'readwrite-unsafe' })
  open = { name, handle, written: false }
  return handle
}

function flush(): void {
  if (open?.written) open.handle.flush()
  if (open) open.written = false
}

function close(): void {
  // Once the file is closed, a flush cannot be asked for any more.
  flush()
  open?.handle.close()
  open = undefined
}

async function fileHandle(name: string, create: boolean): Promise<HandleSource> {
  const root = await navigator.storage.getDirectory()
  const folder = await root.getDirectoryHandle('tritloom', { create })
  return await folder.getFileHandle(name, { create }) as HandleSource
}
