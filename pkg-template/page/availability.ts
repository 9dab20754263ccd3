// Finds out whether a model can run here. It is TypeScript, so that a page can call it before it
// downloads the compiled crate. Fetched when it is asked.
import { isBrowser, NO_BROWSER } from './browser.js'
import { badOption, checkOptions } from '../check.js'
import { adapterOrWhy, described } from '../crate/adapter.js'
import type { Adapter } from '../crate/adapter.js'
import { bytesPerSecond, NO_SIMD, runnable } from '../cpu/probes.js'
import { threadsInWorker } from '../cpu/threads.js'
import { platform } from '../platform.js'
import type { Availability, AvailabilityOptions, BackendAvailability } from '../types.js'

/** See `BitNet.availability`. */
export async function availability(options: AvailabilityOptions = {}): Promise<Availability> {
  checkOptions(options, ['bytes'])
  const { bytes } = options
  if (bytes !== undefined && !(Number.isFinite(bytes) && bytes >= 1)) {
    throw badOption('bytes', 'must be a number of at least 1')
  }
  await platform.gpu?.()
  const adapter = isBrowser() ? await adapterOrWhy() : NO_BROWSER
  const isThere = typeof adapter !== 'string'
  const gpu = isThere ? await usable(bytes, () => rateOf(adapter)) : { available: false, reason: adapter }
  const cpu = await ofCpu(bytes)
  const { name, software } = isThere ? described(adapter) : { name: undefined, software: false }
  // A load chooses so too: the CPU's own code is faster than a GPU that is a CPU.
  const backend = isThere && !(software && cpu.available) ? 'webgpu' : cpu.available ? 'cpu' : undefined
  return {
    available: backend !== undefined,
    ...(backend ? { backend } : { reason: isBrowser() ? `${gpu.reason}; ${cpu.reason}` : NO_BROWSER }),
    backends: { webgpu: gpu, cpu },
    ...(name !== undefined && { adapter: name }),
    features: isThere ? [...adapter.features].sort() : [],
    limits: isThere ? numbers(adapter.limits) : {},
    software
  }
}

async function ofCpu(bytes: number | undefined): Promise<BackendAvailability> {
  if (!isBrowser()) return { available: false, reason: NO_BROWSER }
  return runnable().length > 0 ? usable(bytes, () => bytesPerSecond(threadsInWorker())) : { available: false, reason: NO_SIMD }
}

/** A back end that is there. With a model's `bytes` its speed is estimated, by the rate at which it reads. */
async function usable(bytes: number | undefined, rate: () => Promise<number>): Promise<BackendAvailability> {
  if (bytes === undefined) return { available: true }
  try {
    return { available: true, tokensPerSecond: await rate() / bytes }
  } catch {
    // A back end whose speed cannot be measured may still work.
    return { available: true }
  }
}

/** Bytes that a GPU copies to measure its memory. */
const COPIED = 1 << 26
/** How often it copies them in one submission. */
const COPIES = 8
/** The share of the rate of copying at which models read their weights on cards. */
const SHARE = 0.4
/** `COPY_SRC | COPY_DST` */
const USAGE = 4 | 8

const lost = (): never => { throw new Error('the GPU is lost') }

/** Estimates at how many bytes of weights a second a GPU computes. */
async function rateOf(adapter: Adapter): Promise<number> {
  const device = await adapter.requestDevice()
  try {
    const [from, to] = [0, 1].map(() => device.createBuffer({ size: COPIED, usage: USAGE }))
    let took = Infinity
    for (let run = 0; run < 3; run++) {
      const encoder = device.createCommandEncoder()
      for (let n = 0; n < COPIES; n++) encoder.copyBufferToBuffer(from!, 0, to!, 0, COPIED)
      const start = performance.now()
      device.queue.submit([encoder.finish()])
      // A browser may never settle this once the device is lost.
      await Promise.race([device.queue.onSubmittedWorkDone(), device.lost.then(lost)])
      took = Math.min(took, performance.now() - start)
    }
    // Some browsers count whole milliseconds only.
    return SHARE * 2 * COPIES * COPIED / Math.max(took, 0.1) * 1000
  } finally {
    device.destroy()
  }
}

/** The numbers of an object whose fields are getters of its prototype, which `{...}` leaves out. */
function numbers(limits: object): Record<string, number> {
  const found: Record<string, number> = {}
  for (const name in limits) {
    const value = (limits as Record<string, unknown>)[name]
    if (typeof value === 'number') found[name] = value
  }
  return found
}
