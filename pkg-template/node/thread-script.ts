// The first script of a thread. It defines the globals that a browser's worker has, then runs the thread's own script.
import { parentPort, workerData } from 'node:worker_threads'
import { DAWN, dawn, END, finished } from './gpu.js'
import './here.js'

const port = parentPort!
const events = new EventTarget()
dawn.begins = () => port.postMessage(DAWN)

Object.assign(globalThis, {
  addEventListener: events.addEventListener.bind(events),
  removeEventListener: events.removeEventListener.bind(events),
  dispatchEvent: events.dispatchEvent.bind(events),
  postMessage: (message: unknown, transfer: never[] = []) => port.postMessage(message, transfer),
  close: () => process.exit()
})

const { script } = workerData as { script: string }
// The build adds comments that keep bundlers from following it.
const running = import(script)
// Messages wait until the script listens. Deno loses those that come while nothing listens.
port.on('message', data => {
  if (data === END) void finished().then(() => process.exit())
  else void running.then(() => events.dispatchEvent(new MessageEvent('message', { data })))
})
port.on('messageerror', () => events.dispatchEvent(new MessageEvent('messageerror')))
await running

// An error that is caught nowhere ends the thread, and its maker hears of it. A promise does not end a worker.
process.on('unhandledRejection', reason => {
  events.dispatchEvent(Object.assign(new Event('unhandledrejection'), { reason }))
})
