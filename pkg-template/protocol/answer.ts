// The worker's side: answers messages by calling a local transport. It holds one model at a time.
import { BitNetError } from '../error.js'
import { holdLock } from '../threads/life.js'
import { isOurs, watch } from '../crate/wasm.js'
import { LocalTransport } from './local-transport.js'
import { disposedError, toFailure, VERSION } from './messages.js'
import type {
  Call, FromWorker, Hello, Item, Method, Methods, ModelMethod, Result, ToWorker
} from './messages.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
const scope = globalThis as unknown as {
  postMessage<M extends Method>(message: FromWorker<M>, transfer?: Transferable[]): void
  addEventListener(type: string, listener: (event: never) => void): void
}

/** The model, and the call that loads it. */
let current: { transport: LocalTransport, loadId: number } | undefined
const running = new Map<number, AbortController>()

/** Takes a message. The caller may send others to a script of its own in this worker. */
export function take(message: ToWorker): void {
  if (message?.kind === 'cancel') running.get(message.id)?.abort()
  else if (message?.kind === 'call') void answer(message)
}

// Without these the page would wait for an answer for ever.
watch(error => scope.postMessage({ kind: 'fatal', error: toFailure(error), isOurs: true }))
scope.addEventListener('unhandledrejection', ({ reason }: PromiseRejectionEvent) => {
  scope.postMessage({ kind: 'fatal', error: toFailure(reason), isOurs: isOurs(reason) })
})

async function answer(call: Call): Promise<void> {
  const { id } = call
  const cancel = new AbortController()
  if (call.aborted) cancel.abort()
  running.set(id, cancel)
  try {
    await perform(call, cancel.signal)
  } catch (error) {
    scope.postMessage({ kind: 'error', id, error: toFailure(error) })
  } finally {
    running.delete(id)
  }
}

async function perform(call: Call, signal: AbortSignal): Promise<void> {
  switch (call.method) {
    case 'hello':
      return finish(call, await hello())
    case 'dispose':
      if (current?.loadId === call.args[0]) disposeCurrent()
      return finish(call, undefined)
    case 'load':
      return load(call, signal)
    default:
      return ask(call, signal)
  }
}

async function load(call: Call<'load'>, signal: AbortSignal): Promise<void> {
  if (current) {
    throw new BitNetError('bad-option', 'bad option `worker`: this worker holds a model already')
  }
  const { id, args: [source, options] } = call
  const transport = new LocalTransport()
  transport.onStoring = progress => scope.postMessage({ kind: 'storing', id, progress })
  transport.onLost = loss => scope.postMessage({ kind: 'lost', id, loss })
  current = { transport, loadId: id }
  try {
    finish(call, await transport.load(source, options, { onItem: yieldTo(call), signal }))
  } catch (error) {
    // The caller may try again with this worker.
    if (current?.loadId === id) disposeCurrent()
    throw error
  }
}

async function ask<M extends ModelMethod>(call: Call<M>, signal: AbortSignal): Promise<void> {
  if (!current) throw disposedError()
  const { method, args } = call
  finish(call, await current.transport.call(method, args, { onItem: yieldTo(call), signal }))
}

/** Posts the items that a call yields. */
const yieldTo = <M extends Method>({ id, method }: Call<M>) => (item: Methods[M]['item']) => {
  const message: Item<M> = { kind: 'item', id, method, item }
  scope.postMessage(message)
}

/** Posts the result of a call. Large arrays are moved to the page instead of being copied. */
function finish<M extends Method>({ id, method }: Call<M>, result: Methods[M]['result']): void {
  const message: Result<M> = { kind: 'result', id, method, result }
  const values: unknown = typeof result === 'object' && 'values' in result ? result.values : result
  const isArray = values instanceof Float32Array || values instanceof Uint32Array
  scope.postMessage(message, isArray ? [values.buffer] : [])
}

function disposeCurrent(): void {
  current?.transport.close(disposedError())
  current = undefined
}

/**
 * The name of a lock that this worker holds until it ends, because no event tells when it is
 * killed.
 */
let lock: Promise<string | undefined> | undefined

async function hello(): Promise<Hello> {
  lock ??= holdLock('worker')
  const name = await lock
  return name ? { version: VERSION, lock: name } : { version: VERSION }
}
