// The parts that have another form where there is no browser. `node/` puts them here; in a browser all are missing.

/** How many bytes were read or written, and their hash; or the reason why that failed. */
export interface DiskAnswer {
  array?: ArrayBuffer | undefined
  length?: number
  sha256?: ArrayBuffer
  failed?: string
}

/** Files of stored bytes. An array comes back with the answer. */
export interface Stored {
  /** The records of the files, if they are not in IndexedDB. */
  records?: object
  canWrite(): Promise<boolean>
  sizes(): Promise<Map<string, number>>
  read(name: string, start: number, length: number, array: ArrayBuffer): Promise<DiskAnswer>
  write(name: string, start: number, length: number, array: ArrayBuffer): Promise<DiskAnswer>
  flush(name: string): Promise<DiskAnswer>
  remove(name: string): Promise<void>
  end(): void
}

export interface Platform {
  /** Makes a thread of the package's script at `url`. */
  thread?: (url: URL) => Worker
  /** The reason why only one thread computes, for people. */
  oneThread?: string
  /** The number of threads that compute if a load does not say it. */
  threads?: number
  /** The number of processors. */
  processors?: number
  /** The bytes of a file of the package, by its name. */
  asset?: (name: string) => Promise<Uint8Array<ArrayBuffer>>
  /** The address of a source, which may be a path. Throws if it is neither. */
  address?: (source: string) => URL
  /** The file at an address `file:`. */
  file?: (url: string) => Promise<Blob>
  /** Resolves when WebGPU is there, if it can be had. The crate finds it only if it is `forCrate`. */
  gpu?: (forCrate?: boolean) => Promise<void>
  /** Resolves when the thread has handled the events that wait. */
  pause?: () => Promise<void>
  /** Where models are stored. */
  disk?: {
    open(): Promise<Stored>
    locks: LockManager
    /** Bytes that can still be stored. */
    free(): Promise<number>
    /** Bytes that are stored. */
    used(): Promise<number>
  }
}

export const platform: Platform = {}
