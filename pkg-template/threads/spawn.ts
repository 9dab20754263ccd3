// Workers of the package's own scripts.
import { trustedScript, withTrustedWorkers } from '../trusted.js'

/** Milliseconds after which a browser has surely fetched a script. */
const FETCHED = 60_000

/** What a worker throws whose script could not be fetched from another origin. */
export const NOT_LOADED = 'the worker’s script was not loaded'

/**
 * The worker that `make` makes of the script at `url`. Where the package comes from another origin
 * than the page, one that imports that script: a worker's own must come from the page's origin.
 */
export function spawn(url: URL, make: () => Worker): Worker {
  const onWeb = url.protocol === 'http:' || url.protocol === 'https:'
  if (!onWeb || url.origin === globalThis.location.origin) return withTrustedWorkers(make)
  const type = 'text/javascript'
  const script = URL.createObjectURL(new Blob([importing(url.href)], { type }))
  try {
    return new Worker(trustedScript(script), { type: 'module' })
  } finally {
    // The browser may fetch the script later than this line.
    setTimeout(() => URL.revokeObjectURL(script), FETCHED)
  }
}

/**
 * A script that imports the one at `url`, and keeps messages for it until it is there. To a content
 * security policy an `import` statement of a worker is a worker, whose origin it would have to
 * name beside `blob:`, and `import()` is a script.
 */
const importing = (url: string): string => `
  const early = []
  const keep = ({ data }) => early.push(data)
  addEventListener('message', keep)
  import(${JSON.stringify(url)}).then(() => {
    removeEventListener('message', keep)
    for (const data of early) dispatchEvent(new MessageEvent('message', { data }))
  }, () => setTimeout(() => { throw new Error(${JSON.stringify(NOT_LOADED)}) }))`
