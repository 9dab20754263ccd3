// How sessions of all interfaces are created, used and destroyed.
import { browsers } from './browser.js'
import { destroyed, exception, translated } from './errors.js'
import { callbackOf, signalOf } from './idl.js'
import { Reporter } from './monitor.js'
import type { CreateMonitorCallback } from './monitor.js'
import { primary } from './settings.js'
import { sharedModel } from './shared-model.js'
import type { Availability, SharedModel } from './shared-model.js'
import type { BitNet } from '../page/model.js'

/** An interface, and what the options of a session ask for. They have been checked. */
export interface Wanted {
  /** The interface's name. */
  name: string
  /** The interface's class. */
  ours: unknown
  /** The options as the page has given them, for the browser's own interface. */
  options: object
  /** Whether the package can do it at all. */
  isSupported: boolean
  /** The languages that the model has to know. */
  languages: readonly string[]
  /** Whether it is to embed texts. */
  embeds?: true
}

/** A session's model, and what it shares with others. */
export interface Held {
  model: BitNet
  shared: SharedModel
}

/** The answer of `availability()`. */
export async function availabilityOf(wanted: Wanted): Promise<Availability> {
  const shared = sharedModel(wanted.embeds)
  try {
    const found = shared.settings.prefer === 'browser'
      ? await browsers(wanted.name, wanted.ours, wanted.options)
      : undefined
    if (found) return found.availability
    const { model } = shared.settings
    return isPossible(wanted, shared) && (!model || isFor(wanted, model)) ? await shared.availability() : 'unavailable'
  } catch (error) {
    throw translated(error)
  }
}

/**
 * Creates a session: the browser's own, or the one that `make` gives. `given` has the options of all interfaces. If the
 * page's `monitor` throws an error, the promise rejects with it. If the page's `signal` aborts, it rejects with the
 * signal's reason.
 */
export async function created<T>(
  wanted: Wanted, given: Record<string, unknown>, make: (held: Held, signal: AbortSignal | undefined) => T | Promise<T>
): Promise<T> {
  const signal = signalOf(given.signal)
  const monitor = callbackOf<CreateMonitorCallback>(given.monitor, 'monitor')
  signal?.throwIfAborted()
  const shared = sharedModel(wanted.embeds)
  if (shared.settings.prefer === 'browser') {
    const found = await browsers(wanted.name, wanted.ours, wanted.options)
    if (found) return found.native.create(wanted.options) as Promise<T>
  }
  const reporter = new Reporter(monitor, signal)
  // Other settings do not end a creation that runs.
  const leave = shared.join()
  try {
    if (!isPossible(wanted, shared)) {
      throw exception('NotSupportedError', 'the model does not have the types or languages that the options ask for')
    }
    // A listener may abort at each event: it has its turn before the next one.
    await task()
    reporter.report(0)
    await task()
    const model = await shared.load(signal, reporter.report)
    if (!isFor(wanted, model)) throw exception('NotSupportedError', 'the model embeds texts: it does not answer')
    reporter.report(1)
    await task()
    signal?.throwIfAborted()
    const session = await make({ model, shared }, signal)
    signal?.throwIfAborted()
    return session
  } catch (error) {
    throw signal?.aborted ? signal.reason : translated(error)
  } finally {
    leave()
  }
}

function isPossible({ isSupported, languages }: Wanted, { settings }: SharedModel): boolean {
  const known = settings.languages
  return isSupported && (!known || languages.every(tag => known.includes(primary(tag))))
}

/** A model embeds or answers. One that answers may also have a pooling. */
const isFor = ({ embeds }: Wanted, { info }: BitNet): boolean => embeds === true || !info.embeds

/** Resolves after the events that wait now. Browsers slow timers down in hidden pages, but not messages. */
export const task = (): Promise<void> => new Promise(resolve => {
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => {
    port1.close()
    resolve()
  }
  port2.postMessage(undefined)
})

/** Frees the models of sessions that a page has dropped without `destroy()`. */
const dropped = new FinalizationRegistry<() => void>(leave => leave())

/** The life of a session. It ends by `destroy()`, or by the signal with which it was created. */
export class Life {
  readonly held: Held
  #end = new AbortController()
  #leave: () => void

  /** Throws the reason of a signal that has aborted, as that would never end the session. */
  constructor(held: Held, signal: AbortSignal | undefined) {
    signal?.throwIfAborted()
    this.held = held
    this.#leave = held.shared.join()
    dropped.register(this, this.#leave)
    // A signal may outlive many sessions, and must not keep them.
    signal?.addEventListener('abort', () => this.end(signal.reason), { signal: this.#end.signal })
  }

  /** Ends all calls that run, and those to come, with `reason`. */
  end(reason: unknown = destroyed()): void {
    this.#end.abort(reason)
    this.#leave()
  }

  /** Aborts when the session ends or the page's signal does. Throws the reason if that has happened. */
  signal(value: unknown): AbortSignal {
    const given = signalOf(value)
    const signal = given ? AbortSignal.any([this.#end.signal, given]) : this.#end.signal
    signal.throwIfAborted()
    return signal
  }

  /** The result of a call, or the exception for its error; the signal's reason if that aborts first. */
  async run<T>(signal: AbortSignal, job: () => Promise<T>): Promise<T> {
    try {
      const result = await job()
      signal.throwIfAborted()
      return result
    } catch (error) {
      throw signal.aborted ? signal.reason : translated(error)
    }
  }

  /** A stream of the chunks that `job` passes on. The job begins at once. Cancelling the stream stops it. */
  stream<T>(signal: AbortSignal, job: (signal: AbortSignal, onChunk: (chunk: T) => void) => Promise<unknown>): ReadableStream<T> {
    const stop = new AbortController()
    const both = AbortSignal.any([signal, stop.signal])
    return iterable(new ReadableStream<T>({
      start: controller => {
        // An aborted job may take a while to end: the stream does not wait for that.
        const onAbort = () => controller.error(signal.reason)
        signal.addEventListener('abort', onAbort, { once: true })
        this.run(both, () => job(both, chunk => controller.enqueue(chunk)))
          .then(() => controller.close())
          // A stream that was left as it ended cannot be closed any more. Then this does nothing.
          .catch(error => controller.error(error))
          .finally(() => signal.removeEventListener('abort', onAbort))
      },
      cancel: reason => stop.abort(reason)
    }))
  }
}

/** Safari's streams cannot be looped over yet. */
function iterable<T>(stream: ReadableStream<T>): ReadableStream<T> {
  if (Symbol.asyncIterator in (stream as object)) return stream
  const value = async function* () {
    const reader = stream.getReader()
    try {
      for (let read; !(read = await reader.read()).done;) yield read.value
    } finally {
      // This stops the model if the loop was left, and does nothing at the end.
      await reader.cancel()
    }
  }
  return Object.defineProperty(stream, Symbol.asyncIterator, { value })
}
