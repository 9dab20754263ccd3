// Makes workers of the package's own scripts.
import { platform } from '../platform.js'
import { trustedScript, withTrustedWorkers } from '../trusted.js'

/** Milliseconds after which a browser has certainly fetched a script. */
const FETCHED = 60_000

/** The error that a worker throws if its script could not be fetched from another origin. */
export const NOT_LOADED = 'the worker’s script was not loaded'

/**
 * The worker that `make` makes of the script at `url`. A worker's script must come from the page's
 * origin. If the package comes from another origin, the worker gets a script that imports the one
 * at `url`.
 */
export function spawn(url: URL, make: () => Worker): Worker {
  if (platform.thread) return platform.thread(url)
  const onWeb = url.protocol === 'http:' || url.protocol === 'https:'
  if (!onWeb || url.origin === globalThis.location.origin) return withTrustedWorkers(make)
  const type = 'text/javascript'
  const script = URL.createObjectURL(new Blob([importing(url.href)], { type }))
  try {
    return new Worker(trustedScript(script), { type: 'module' })
  } finally {
    // The browser may fetch the script after this line has run.
    setTimeout(() => URL.revokeObjectURL(script), FETCHED)
  }
}

/**
 * A script that imports the one at `url`, and keeps messages for it until it is there. It uses
 * `import()`. To a content security policy, a worker's `import` statement is another worker, so the
 * policy would have to name its origin beside `blob:`. `import()` is only a script.
 */
const importing = (url: string): string => `
  const early = []
  const keep = ({ data }) => early.push(data)
  addEventListener('message', keep)
  import(${JSON.stringify(url)}).then(() => {
    removeEventListener('message', keep)
    for (const data of early) dispatchEvent(new MessageEvent('message', { data }))
  }, () => setTimeout(() => { throw new Error(${JSON.stringify(NOT_LOADED)}) }))`
