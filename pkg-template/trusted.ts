// Trusted Types. If a page's content security policy has `require-trusted-types-for 'script'`,
// addresses of scripts and HTML must come from policies. The page may name these:
// `trusted-types tritloom`.

interface Policy {
  createHTML(html: string): string
  createScriptURL(url: string): string
}

interface TrustedTypes {
  createPolicy(name: string, rules: Policy): Policy
}

/**
 * The package's policy. It takes only texts that the package itself has written, or has read from
 * the page. It is `undefined` if the browser has no such policies, or if the page does not allow
 * one of this name.
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
 * Calls `make`, which makes a worker, and makes the worker's address trusted. Bundlers recognise
 * `new Worker(new URL(…))` only if `Worker` is the global one. So the global one is replaced during
 * the call.
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
