// The first script of a thread: makes what a browser's worker finds, then runs the script that it was made for.
import { parentPort, workerData } from 'node:worker_threads'
import { DAWN, END, finished, usesDawn } from './gpu.js'
import './here.js'

const port = parentPort!
const events = new EventTarget()
let isTold = false

function postMessage(message: unknown, transfer: never[] = []): void {
  if (usesDawn() && !isTold) {
    isTold = true
    port.postMessage(DAWN)
  }
  port.postMessage(message, transfer)
}

Object.assign(globalThis, {
  addEventListener: events.addEventListener.bind(events),
  removeEventListener: events.removeEventListener.bind(events),
  dispatchEvent: events.dispatchEvent.bind(events),
  postMessage
})

const { script } = workerData as { script: string }
// Messages wait until the script listens. The build adds comments that keep bundlers from following it.
await import(script)
port.on('message', data => {
  if (data === END) void finished().then(() => process.exit())
  else events.dispatchEvent(new MessageEvent('message', { data }))
})
port.on('messageerror', () => events.dispatchEvent(new MessageEvent('messageerror')))

// An error that is caught nowhere ends the thread, and its maker hears of it. A promise does not end a worker.
process.on('unhandledRejection', reason => {
  events.dispatchEvent(Object.assign(new Event('unhandledrejection'), { reason }))
})
