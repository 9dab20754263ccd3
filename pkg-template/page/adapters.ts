// Adapters: where their bytes come from, and what a page holds of them.
import { badOption, checkOptions } from '../check.js'
import { BitNetError } from '../error.js'
import { platform } from '../platform.js'
import type { Transport } from '../protocol/messages.js'
import { portable } from '../protocol/source.js'
import type { AbortOptions, Adapter, AppliedAdapter, LoadedAdapter, Source } from '../types.js'

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
  const { id, ...info } = await queue(async () => {
    const loaded = await transport.call('loadAdapter', [file])
    // The caller has given it up, so no handle would free it.
    if (signal?.aborted) await transport.call('freeAdapter', [loaded.id])
    return loaded
  }, signal)
  const adapter: Adapter = {
    ...info,
    dispose: async () => { await queue(() => transport.call('freeAdapter', [id])) }
  }
  known.set(adapter, { transport, id })
  return adapter
}

/** Applies adapters to a model, and sets its `adaptersHash`. See `BitNet.setAdapters`. */
export async function setAdapters(
  transport: Transport, adapters: readonly AppliedAdapter[], model: { adaptersHash: string }
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
  try {
    model.adaptersHash = await transport.call('setAdapters', [chosen])
  } catch (error) {
    // After any other failure none is applied.
    if ((error as BitNetError).code !== 'bad-option') model.adaptersHash = ''
    throw error
  }
}

/** A model that takes adapters. */
interface Adaptable {
  loadAdapter(source: Source, options: AbortOptions): Promise<Adapter>
  setAdapters(adapters: readonly AppliedAdapter[], options: AbortOptions): Promise<void>
}

/** Checks the adapters of a load's options. Gives what loads and applies them once the model is there. */
export function applying(adapters: readonly LoadedAdapter[]): (model: Adaptable, signal: AbortSignal) => Promise<void> {
  if (!Array.isArray(adapters)) throw badOption('adapters', 'must be an array')
  const asked = adapters.map((one: LoadedAdapter, n) => {
    checkOptions(one, ['source', 'scale'])
    const { source, scale = 1 } = one
    if (!Number.isFinite(scale)) throw badOption(`adapters[${n}].scale`, 'must be a finite number')
    return { source, scale }
  })
  return async (model, signal) => {
    const loaded: { adapter: Adapter, scale: number }[] = []
    try {
      for (const { source, scale } of asked) {
        loaded.push({ adapter: await model.loadAdapter(source, { signal }), scale })
      }
      await model.setAdapters(loaded, { signal })
    } finally {
      // They live on as long as they are applied.
      for (const { adapter } of loaded) void adapter.dispose().catch(() => {})
    }
  }
}

/** The bytes of a source. */
async function blobOf(source: Source, signal: AbortSignal | undefined): Promise<Blob> {
  const from = portable(source)
  if (from instanceof Blob) return from
  if (from instanceof ArrayBuffer || from instanceof Uint8Array) return new Blob([from as BlobPart])
  if (from instanceof ReadableStream) return new Response(from.pipeThrough(new TransformStream(), signal ? { signal } : {})).blob()
  if (typeof from === 'string' && from.startsWith('file:') && platform.file) {
    // A file of Node is empty in another thread.
    return new Blob([await (await platform.file(from)).arrayBuffer()])
  }
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
