// Whether the model may be downloaded. Fetched when it is not stored.
import { exception } from './errors.js'
import type { Checked } from './settings.js'
import { unlessAborted } from '../page/abort.js'
import { BitNet } from '../page/had.js'

/** Milliseconds to wait for the size of the model. A server may not answer. */
const PATIENCE = 5000

/** Resolves if the model at `url` may be downloaded. Rejects with a `NotAllowedError`, or the reason of `signal`. */
export async function permit(url: string, { mayDownload, load }: Checked, signal: AbortSignal): Promise<void> {
  const ask = async () => {
    if (typeof mayDownload !== 'function') return mayDownload
    const isWhole = load?.cache === 'off' || load?.cache === 'refresh'
    return mayDownload({ url, bytes: isWhole ? undefined : await missing(url, signal), signal })
  }
  const may = mayDownload === undefined
    // Some browsers and all other runtimes do not say what the visitor has done.
    ? globalThis.navigator?.userActivation?.hasBeenActive ?? true
    : await unlessAborted(signal, ask)
  if (may) return
  const why = mayDownload === undefined
    ? 'the visitor has neither clicked nor pressed a key yet, see `mayDownload`'
    : 'the model is not stored, and must not be downloaded'
  throw exception('NotAllowedError', why)
}

/** The bytes that would come; `undefined` if the server does not say, or not in time. */
async function missing(url: string, signal: AbortSignal): Promise<number | undefined> {
  const late = new AbortController()
  const patience = setTimeout(() => late.abort(), PATIENCE)
  try {
    return await BitNet.cache.missing(url, { signal: AbortSignal.any([signal, late.signal]) })
  } catch (error) {
    if (late.signal.aborted) return undefined
    throw error
  } finally {
    clearTimeout(patience)
  }
}
