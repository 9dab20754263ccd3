// Workers of the package's own scripts.

/** Milliseconds after which a browser has surely fetched a script. */
const FETCHED = 60_000

/**
 * The worker that `make` makes of the script at `url`. Where the package comes from another origin
 * than the page, one that imports that script: a worker's own must come from the page's origin.
 */
export function spawn(url: URL, make: () => Worker): Worker {
  const onWeb = url.protocol === 'http:' || url.protocol === 'https:'
  if (!onWeb || url.origin === globalThis.location.origin) return make()
  const type = 'text/javascript'
  const script = URL.createObjectURL(new Blob([`import ${JSON.stringify(url.href)}`], { type }))
  try {
    return new Worker(script, { type: 'module' })
  } finally {
    // The browser may fetch the script later than this line.
    setTimeout(() => URL.revokeObjectURL(script), FETCHED)
  }
}
