// Adapters: where their bytes come from, and what a page holds of them.
import { badOption, checkOptions } from '../check.js'
import { BitNetError } from '../error.js'
import { platform } from '../platform.js'
import type { Transport } from '../protocol/messages.js'
import { portable } from '../protocol/source.js'
import type { Adapter, AppliedAdapter, LoadedAdapter, Source } from '../types.js'

/** Makes a call once all calls before it have ended. */
export type Queue = <T>(job: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** The model to which an adapter belongs, and its number there. */
const known = new WeakMap<Adapter, { transport: Transport, id: number }>()

/** Loads an adapter for a model. See `BitNet.loadAdapter`. */
export async function loadAdapter(
  transport: Transport, queue: Queue, source: Source, signal: AbortSignal | undefined
): Promise<Adapter> {
  signal?.throwIfAborted()
  const file = await blobOf(source, signal)
  const { id, ...info } = await queue(() => transport.call('loadAdapter', [file]), signal)
  const adapter: Adapter = {
    ...info,
    dispose: async () => { await queue(() => transport.call('freeAdapter', [id])) }
  }
  known.set(adapter, { transport, id })
  return adapter
}

/** Applies adapters to a model. See `BitNet.setAdapters`. */
export async function setAdapters(
  transport: Transport, queue: Queue, adapters: readonly AppliedAdapter[], signal: AbortSignal | undefined
): Promise<void> {
  if (!Array.isArray(adapters)) throw badOption('adapters', 'must be an array')
  const chosen = adapters.map((one: AppliedAdapter, n) => {
    checkOptions(one, ['adapter', 'scale'])
    const { adapter, scale = 1 } = one
    const found = known.get(adapter)
    if (found?.transport !== transport) throw badOption(`adapters[${n}].adapter`, 'must be of this model\'s loadAdapter')
    if (!Number.isFinite(scale)) throw badOption(`adapters[${n}].scale`, 'must be a finite number')
    return { id: found.id, scale }
  })
  await queue(() => transport.call('setAdapters', [chosen]), signal)
}

/** A model that takes adapters. */
interface Adaptable {
  loadAdapter(source: Source): Promise<Adapter>
  setAdapters(adapters: readonly AppliedAdapter[]): Promise<void>
}

/** Loads and applies the adapters of a load's options. */
export async function applyAll(model: Adaptable, adapters: readonly LoadedAdapter[]): Promise<void> {
  if (!Array.isArray(adapters)) throw badOption('adapters', 'must be an array')
  const loaded: AppliedAdapter[] = []
  for (const one of adapters as readonly LoadedAdapter[]) {
    checkOptions(one, ['source', 'scale'])
    const { source, scale = 1 } = one
    loaded.push({ adapter: await model.loadAdapter(source), scale })
  }
  await model.setAdapters(loaded)
}

/** The bytes of a source. */
async function blobOf(source: Source, signal: AbortSignal | undefined): Promise<Blob> {
  const from = portable(source)
  if (from instanceof Blob) return from
  if (from instanceof ArrayBuffer || from instanceof Uint8Array) return new Blob([from as BlobPart])
  if (from instanceof ReadableStream) return new Response(from).blob()
  if (typeof from === 'string' && from.startsWith('file:') && platform.file) return platform.file(from)
  const [url, init] = typeof from === 'string' ? [from, {}] : [from.request.url, from.request.init]
  try {
    const response = await fetch(url, signal ? { ...init, signal } : init)
    if (!response.ok) throw new BitNetError('http', `HTTP ${response.status} for ${url}`)
    return await response.blob()
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof BitNetError) throw error
    throw new BitNetError('network', `could not read ${url}: ${(error as Error).message}`, { cause: error })
  }
}
