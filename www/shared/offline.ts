// Keeps the site's pages, so that they open without a network next time.

/**
 * Starts the service worker, which is in the site's root `root`, because it answers for files of all folders. Gives
 * whether the pages are kept; not by the development server, which has no built site. Rejects if the browser refuses.
 */
export async function keepPages(root: string): Promise<boolean> {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return false
  await navigator.serviceWorker.register(trusted(`${root}sw.js`))
  await navigator.serviceWorker.ready
  return true
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
