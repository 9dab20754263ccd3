// Lets the pages open without a network next time.

/** Stores the site's pages in this browser. Rejects where that cannot be. */
export async function keepPages(): Promise<void> {
  // It has to be at the site's root, because it answers for files of other folders too: for the
  // package's worker and its wasm.
  await navigator.serviceWorker.register(trusted('../sw.js'))
  await navigator.serviceWorker.ready
}

/**
 * An address of ours, for hosts that require Trusted Types. The standard types do not know these
 * yet.
 */
function trusted(url: string): string {
  const { trustedTypes } = window as unknown as { trustedTypes?: TrustedTypes }
  return trustedTypes?.createPolicy('page', { createScriptURL: url => url }).createScriptURL(url) ?? url
}

interface TrustedTypes {
  createPolicy(name: string, rules: Policy): Policy
}

interface Policy {
  createScriptURL(url: string): string
}
