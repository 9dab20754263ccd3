// Keeps the site's pages on this device, so that this one opens without a network.
import { policy } from './trusted.ts'

/** The service worker is at the site's root, because it answers for files of other folders too. */
const WORKER = '../sw.js'

export async function keepPages() {
  // The development server has no built site to store.
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return
  try {
    await navigator.serviceWorker.register(policy?.createScriptURL(WORKER) ?? WORKER)
  } catch {
    // The page works as well, with a network.
  }
}
