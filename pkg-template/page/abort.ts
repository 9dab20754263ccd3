// Helpers for calls that end early.

/**
 * Makes one signal of several, and a promise that rejects with the reason of the first that aborts.
 */
export function abortOf(...signals: (AbortSignal | undefined)[]) {
  const controller = new AbortController()
  const { signal } = controller
  const listeners = signals.filter(one => one !== undefined).map(one => {
    const abort = () => controller.abort(one.reason)
    if (one.aborted) abort()
    one.addEventListener('abort', abort)
    return () => one.removeEventListener('abort', abort)
  })
  const promise = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  promise.catch(() => {})
  return { signal, promise, release: () => listeners.forEach(release => release()) }
}

/** The result of `job`. If `signal` aborts first, rejects with its reason. */
export async function unlessAborted<T>(
  signal: AbortSignal | undefined, job: () => Promise<T>
): Promise<T> {
  if (!signal) return job()
  signal.throwIfAborted()
  const aborted = abortOf(signal)
  try {
    return await Promise.race([job(), aborted.promise])
  } finally {
    aborted.release()
  }
}
