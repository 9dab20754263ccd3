// How others notice that a worker has ended: no event tells when one is killed. So it holds a lock
// as long as it lives, and who waits for an answer waits for that lock too.

/** Takes a lock until this thread ends, in whatever way. Resolves to its name. */
export const holdLock = (of: string): Promise<string | undefined> =>
  new Promise(resolve => {
    const name = `tritloom-${of}-${crypto.randomUUID()}`
    const held = () => {
      resolve(name)
      return new Promise<never>(() => {})
    }
    // A frame without storage has no locks: all works, but nobody notices a killed worker.
    if (navigator.locks) navigator.locks.request(name, held).catch(() => resolve(undefined))
    else resolve(undefined)
  })

/** Calls `onEnd` when the thread that holds the lock has ended, unless `signal` is aborted before. */
export function whenFree(lock: string, signal: AbortSignal, onEnd: () => void): void {
  navigator.locks.request(lock, { signal }, onEnd).catch(() => {}) // It was aborted.
}
