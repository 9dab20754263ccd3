// The worker's end: an engine behind messages. Holds one model at a time.
import { Engine } from './engine.js'
import { BitNetError } from './error.js'
import { failure, VERSION } from './protocol.js'
import type { FromWorker, Hello, Method, Methods, ToWorker } from './protocol.js'

// Typed by hand: the types of pages and of workers cannot be used together.
const scope = globalThis as unknown as {
  postMessage(message: FromWorker, transfer?: Transferable[]): void
  addEventListener(type: string, listener: (event: never) => void): void
}

/** The model, and the call that loads it. */
let current: { engine: Engine, loadId: number } | undefined
const running = new Map<number, AbortController>()

scope.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if ('cancel' in data) running.get(data.id)?.abort()
  else void answer(data.id, data.method, data.args)
})

// What nobody awaits would otherwise be lost, and the page would wait for ever.
scope.addEventListener('unhandledrejection', ({ reason }: PromiseRejectionEvent) => {
  scope.postMessage({ fatal: failure(reason) })
})

async function answer(id: number, method: Method | 'hello' | 'dispose', args: unknown[]): Promise<void> {
  const cancel = new AbortController()
  running.set(id, cancel)
  try {
    const value = await perform(id, method, args, cancel.signal)
    scope.postMessage({ id, value }, value instanceof Float32Array || value instanceof Uint32Array ? [value.buffer as ArrayBuffer] : [])
  } catch (error) {
    scope.postMessage({ id, error: failure(error) })
  } finally {
    running.delete(id)
  }
}

async function perform(id: number, method: Method | 'hello' | 'dispose', args: unknown[], signal: AbortSignal): Promise<unknown> {
  if (method === 'hello') return hello()
  if (method === 'dispose') {
    if (current?.loadId === args[0]) letGo()
    return undefined
  }
  if (method === 'load') {
    if (current) throw new BitNetError('bad-option', 'bad option `worker`: this worker holds a model already')
    const engine = new Engine()
    engine.onLost = lost => scope.postMessage({ id, lost })
    current = { engine, loadId: id }
  }
  const engine = current?.engine
  if (!engine) throw disposed()
  const onPiece = (piece: unknown) => scope.postMessage({ id, piece })
  try {
    return await engine.call(method, args as Parameters<Methods[Method]>, { onPiece, signal })
  } catch (error) {
    // The place is free for another attempt.
    if (current?.loadId === id) letGo()
    throw error
  }
}

function letGo(): void {
  current?.engine.close(disposed())
  current = undefined
}

const disposed = () => new BitNetError('disposed', 'the model was disposed of')

/** The name of a lock that is held until this worker ends, however it ends: no event tells. */
let lock: Promise<string | undefined> | undefined

async function hello(): Promise<Hello> {
  lock ??= hold(`ternlight-worker-${crypto.randomUUID()}`)
  const name = await lock
  return name ? { version: VERSION, lock: name } : { version: VERSION }
}

const hold = (name: string): Promise<string | undefined> =>
  new Promise(resolve => {
    const held = () => {
      resolve(name)
      return new Promise<never>(() => {})
    }
    // Without locks, or in a storage-less frame, a killed worker goes unnoticed; all else works.
    if (navigator.locks) navigator.locks.request(name, held).catch(() => resolve(undefined))
    else resolve(undefined)
  })
