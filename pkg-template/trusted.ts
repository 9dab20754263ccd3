// Trusted Types. A page whose content security policy has `require-trusted-types-for 'script'` takes
// addresses of scripts and HTML from policies alone, which it may name: `trusted-types tritloom`.

interface Policy {
  createHTML(html: string): string
  createScriptURL(url: string): string
}

interface TrustedTypes {
  createPolicy(name: string, rules: Policy): Policy
}

/**
 * Takes only what the package itself has written, or read from the page. Absent where the browser
 * has no such policies, and where the page does not allow one of this name.
 */
const policy = createPolicy()

function createPolicy(): Policy | undefined {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  try {
    return trustedTypes?.createPolicy('tritloom', { createHTML: html => html, createScriptURL: url => url })
  } catch {
    return undefined
  }
}

/** HTML for a document that is not shown. */
export const trustedHtml = (html: string): string => policy?.createHTML(html) ?? html

/** The address of a script of this package. */
export const trustedScript = (url: string | URL): string =>
  policy?.createScriptURL(String(url)) ?? String(url)

/**
 * Calls `make`, which makes a worker, with its address trusted. Bundlers recognise `new Worker(new
 * URL(…))` only where `Worker` is the global one, so that is another one during the call.
 */
export function withTrustedWorkers(make: () => Worker): Worker {
  if (!policy) return make()
  const { Worker } = globalThis
  const replace = (value: typeof Worker) => Reflect.set(globalThis, 'Worker', value)
  replace(class extends Worker {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(trustedScript(url), options)
    }
  })
  try {
    return make()
  } finally {
    replace(Worker)
  }
}
