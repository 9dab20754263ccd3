// A stand-in for Cross-Origin Storage, with the behaviour of its specification as of 2026
// (https://wicg.github.io/cross-origin-storage/): one registry of files by their hashes, and a
// `navigator.crossOriginStorage` for each site. Prompts and failures are at a test's command.

/** A prompt that is not answered. */
const NEVER = new Promise(() => {})

const named = (name, message = name) => new DOMException(message, name)

const digest = async blob => {
  const bytes = await crypto.subtle.digest('SHA-256', await blob.arrayBuffer())
  return Array.from(new Uint8Array(bytes), byte => byte.toString(16).padStart(2, '0')).join('')
}

/** The files of all sites. */
export class Registry {
  /**
   * By the digits of their hashes.
   * @type {Map<string, { bytes?: Blob, writers: number, storers: Set<string>, isGlobal: boolean }>}
   */
  entries = new Map()
  /**
   * The hashes that enough sites use. Others are not disclosed to sites that did not put them there.
   * @type {Set<string>}
   */
  publicHashes = new Set()
  /**
   * The requests for handles that came.
   * @type {('read' | 'write')[]}
   */
  asked = []
  /**
   * How requests for reading are answered.
   * @type {'refuse' | 'silent' | undefined}
   */
  onRead
  /**
   * The same of those for writing.
   * @type {'refuse' | 'silent' | undefined}
   */
  onWrite
  /**
   * The name of the exception that a write throws.
   * @type {string | undefined}
   */
  failure
  /** How many more streams for writing are refused. */
  refusals = 0
  /** The handles that write wait for this. */
  held = Promise.resolve()
  /** Ends that. */
  release = () => {}
  /**
   * If it is there, it gives the file that is read.
   * @type {(() => File) | undefined}
   */
  onFile
  /**
   * The hashes of files that were closed with other bytes.
   * @type {string[]}
   */
  dropped = []

  /**
   * The interface that `origin` has, in which the function has one of the names that it ever had.
   * @param {string} origin
   * @param {'getFileHandle' | 'requestFileHandle' | 'requestFileHandles'} form
   * @returns {Record<string, (...args: unknown[]) => Promise<any>>}
   */
  of(origin, form = 'requestFileHandle') {
    const one = (hash, options = {}) => this.#request(origin, hash, options)
    const many = async (hashes, { origins, ...options } = {}) => {
      if (origins !== undefined && !Array.isArray(origins)) throw new TypeError('origins is no sequence')
      return Promise.all(hashes.map(hash => one(hash, { ...options, origins: origins ?? '*' })))
    }
    return { [form]: form === 'requestFileHandles' ? many : one }
  }

  /**
   * Puts a file there, as a site does that is not the tests'.
   * @param {Blob} file
   * @param {string} [hash] one that it does not have
   */
  async put(file, hash) {
    const value = hash ?? await digest(file)
    this.publicHashes.add(value)
    this.entries.set(value, { bytes: file, writers: 0, storers: new Set(['https://other.example']), isGlobal: true })
  }

  async #request(origin, { algorithm, value }, { create = false, origins } = {}) {
    this.asked.push(create ? 'write' : 'read')
    const how = create ? this.onWrite : this.onRead
    if (how === 'silent') await NEVER
    if (create) await this.held
    if (how === 'refuse') throw named('NotAllowedError', 'the visitor said no')
    if (algorithm !== 'SHA-256' || !/^[0-9a-f]{64}$/.test(value)) throw new TypeError(`no hash: ${algorithm} ${value}`)
    return create ? this.#writable(origin, value, origins) : this.#readable(origin, value)
  }

  #readable(origin, value) {
    const entry = this.entries.get(value)
    if (entry && !entry.bytes) throw named('NotAllowedError', 'it is being written')
    const isDisclosed = entry?.storers.has(origin) || entry?.isGlobal && this.publicHashes.has(value)
    if (!isDisclosed) throw named('NotFoundError')
    return { getFile: async () => this.onFile ? this.onFile() : new File([entry.bytes], value) }
  }

  #writable(origin, value, origins) {
    const entry = this.entries.get(value) ?? { writers: 0, storers: new Set(), isGlobal: false }
    this.entries.set(value, entry)
    entry.writers++
    const chunks = []
    const write = async chunk => {
      if (this.failure) throw named(this.failure)
      chunks.push(chunk)
    }
    // A stream that is aborted counts as one that is still being written.
    const close = async () => {
      const bytes = new Blob(chunks)
      entry.writers--
      if (await digest(bytes) !== value) {
        if (!entry.bytes && entry.writers === 0) this.entries.delete(value)
        this.dropped.push(value)
        throw named('DataError', 'other bytes')
      }
      entry.bytes = bytes
      entry.storers.add(origin)
      entry.isGlobal ||= origins === '*'
    }
    return {
      getFile: async () => { throw named('NotAllowedError', 'it is not written yet') },
      createWritable: async () => {
        if (this.refusals > 0) throw named('InvalidStateError', `${this.refusals--} refusals are left`)
        return { write, close, abort: async () => {} }
      }
    }
  }
}
