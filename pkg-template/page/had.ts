// Whether a load can have its model, before it begins. Fetched when an entry is asked.
import { BitNet } from './model.js'
import type { LoadOptions } from '../types.js'

export { BitNet }

/** How a load would have its model. */
export interface Had {
  /** `downloadable` if the network is needed, `available` if it is not. */
  state: 'unavailable' | 'downloadable' | 'available'
  /** Why nothing here can compute it. */
  reason?: string | undefined
}

/** How a load with these options would have the model at an address; without one, its bytes are there. */
export async function had(
  address: string | undefined, { backend = 'auto', cache = 'use' }: Pick<LoadOptions, 'backend' | 'cache'> = {}
): Promise<Had> {
  const found = await BitNet.availability()
  const { available, reason } = backend === 'auto' ? found : found.backends[backend] ?? {}
  if (!available) return { state: 'unavailable', reason }
  if (address === undefined || !/^https?:/.test(address)) return { state: 'available' }
  const [url] = address.split('#')
  const isRead = cache !== 'off' && cache !== 'refresh'
  // If storage is blocked, nothing is stored.
  const models = isRead ? await BitNet.cache.list().catch(() => []) : []
  if (models.some(model => model.complete && model.url === url)) return { state: 'available' }
  return { state: cache === 'only' ? 'unavailable' : 'downloadable' }
}
