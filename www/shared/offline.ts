// Keeps the site's pages, so that they open without a network next time.
import { policy } from './trusted.ts'

/**
 * Starts the service worker, which is in the site's root `root`, because it answers for files of all folders. Gives
 * whether the pages are kept; not by the development server, which has no built site. Rejects if the browser refuses.
 */
export async function keepPages(root: string): Promise<boolean> {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return false
  const worker = `${root}sw.js`
  await navigator.serviceWorker.register(policy?.createScriptURL(worker) ?? worker)
  await navigator.serviceWorker.ready
  return true
}

/** Keeps the pages, and says in `state` whether they are. */
export async function sayKept(root: string, state: HTMLElement) {
  try {
    if (await keepPages(root)) state.textContent = 'This page is kept and opens offline.'
  } catch (error) {
    state.textContent = `This page could not be kept: ${error instanceof Error ? error.message : error}`
  }
}
