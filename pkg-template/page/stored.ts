// `BitNet.cache`. The code behind it is fetched when it is first asked.
import type { ModelCache } from './cache.js'
import { fetched } from '../error.js'

const code = () => fetched(() => import('./cache.js'))

/** Calls the method of the same name behind it. */
const later = <Name extends keyof ModelCache>(name: Name) =>
  (async (...args: unknown[]) =>
    ((await code()).cache[name] as (...args: unknown[]) => unknown)(...args)) as unknown as ModelCache[Name]

export const cache: ModelCache = {
  list: later('list'),
  verify: later('verify'),
  missing: later('missing'),
  delete: later('delete'),
  clear: later('clear'),
  estimate: later('estimate'),
  persist: later('persist')
}

/** Asks the browser not to delete models on its own, if this page has not asked before. */
export const persistOnce = async (): Promise<void> => {
  try {
    await (await code()).persistOnce()
  } catch {
    // It is asked when the next model is stored.
  }
}
