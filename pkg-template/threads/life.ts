// Notices when a worker ends. No event tells when one is killed. So each worker holds a lock as
// long as it lives, and a thread that waits for its answer also waits for that lock.

/** Takes a lock until this thread ends in any way. Resolves to its name. */
export const holdLock = (of: string): Promise<string | undefined> =>
  new Promise(resolve => {
    // A frame without storage has no locks. Everything works there, but killed workers are not
    // noticed. A page without https has neither locks nor `randomUUID`.
    if (!globalThis.navigator?.locks) return resolve(undefined)
    const name = `tritloom-${of}-${crypto.randomUUID()}`
    const held = () => {
      resolve(name)
      return new Promise<never>(() => {})
    }
    navigator.locks.request(name, held).catch(() => resolve(undefined))
  })

/** Calls `onEnd` when the thread that holds the lock has ended, unless `signal` aborts before. */
export function whenFree(lock: string, signal: AbortSignal, onEnd: () => void): void {
  navigator.locks.request(lock, { signal }, onEnd).catch(() => {}) // This rejects if `signal` aborts.
}
