// Cross-Origin Storage: one copy of a file for all sites, which find it by its hash. It is a proposal
// (https://github.com/WICG/cross-origin-storage), and only some browsers and extensions have it. Its
// specification gives it to workers too, but the extension only to pages, so it is asked by the thread
// that calls `BitNet.load`.

/** Milliseconds to wait for a file. A browser may ask its visitor, who may not answer. */
const PATIENCE = 5000
/** Bytes that are written at a time, so that writing can end early. */
const SLICE = 16 << 20

/** A file by its hash, with 64 digits. */
export interface Hash {
  algorithm: 'SHA-256'
  value: string
}

interface HandleOptions {
  create?: boolean
  origins?: '*'
}

type GetHandle = (hash: Hash, options: HandleOptions) => Promise<FileSystemFileHandle>

/** The proposal has changed the name of its function twice. */
interface CrossOriginStorage {
  getFileHandle?: GetHandle
  requestFileHandle?: GetHandle
  requestFileHandles?: (hashes: Hash[], options: HandleOptions) => Promise<FileSystemFileHandle[]>
}

/** The digits of a hash in base64. Throws if it is none. */
export const digitsOf = (base64: string): string =>
  Array.from(atob(base64), byte => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('')

/**
 * The file; undefined if it is not there. A text is the reason why that is not known: the browser or its
 * visitor refuses, another site is writing the file, or nothing answers.
 */
export async function find(hash: Hash): Promise<File | string | undefined> {
  let patience: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<string>(resolve => {
    patience = setTimeout(resolve, PATIENCE, `no answer in ${PATIENCE / 1000} seconds`)
  })
  const found = getHandle(hash).then(handle => handle.getFile()).catch(error =>
    (error as Error | null)?.name === 'NotFoundError' ? undefined : reason(error)
  )
  return Promise.race([found, silence]).finally(() => clearTimeout(patience))
}

/**
 * Puts a file there, for all sites. The browser compares its hash, and refuses another. A file that is
 * being written can be read by no site. So what was begun is always closed. Once `isEnded`, that is with
 * too few bytes, and the browser drops it.
 */
export async function offer(hash: Hash, file: Blob, isEnded: () => boolean): Promise<void> {
  const handle = await getHandle(hash, { create: true, origins: '*' })
  // From here on no site can read the file until it is closed, so one failure is not the end.
  const writable = await handle.createWritable().catch(() => handle.createWritable())
  try {
    for (let start = 0; start < file.size && !isEnded(); start += SLICE) {
      await writable.write(file.slice(start, start + SLICE))
    }
  } catch (error) {
    await writable.close().catch(() => {})
    throw error
  }
  await writable.close()
}

async function getHandle(hash: Hash, options: HandleOptions = {}): Promise<FileSystemFileHandle> {
  const { crossOriginStorage: storage } = navigator as unknown as { crossOriginStorage: CrossOriginStorage }
  if (storage.getFileHandle) return storage.getFileHandle(hash, options)
  if (storage.requestFileHandle) return storage.requestFileHandle(hash, options)
  // The first form takes no `*`. Without a list of sites it means all of them.
  const { origins, ...others } = options
  const [handle] = await storage.requestFileHandles!([hash], others)
  return handle!
}

/** The text of an error, for a note. */
export const reason = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)
