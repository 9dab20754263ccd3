// The script of the worker. It hands each message to the one that answers, which it imports.
//
// A chunk that a bundled script imports later may import from that script. In WebKit 2.50 a worker's first script then runs
// once more, and answers each message twice. So nothing imports from this one, and it shares nothing with others.
import type { NOT_LOADED } from '../threads/spawn.js'
import type { ToWorker } from './messages.js'

// Declared here, because the standard types of pages and of workers cannot be used together.
const scope = globalThis as unknown as {
  addEventListener(type: 'message', listener: (event: MessageEvent<ToWorker>) => void): void
}

const notLoaded: typeof NOT_LOADED = 'the worker’s script was not loaded'

const answering = import('./answer.js')
scope.addEventListener('message', ({ data }) => { void answering.then(({ take }) => take(data), () => {}) })
// Uncaught, so that the page hears of it.
answering.catch(() => setTimeout(() => { throw new Error(notLoaded) }))
