// Firefox looks for finished work of the GPU ten times a second, and also whenever something is
// submitted. Without help a token takes a tenth of a second there, however fast the GPU is. So
// while something waits for the GPU, this submits empty work again and again.

/** Milliseconds between two submissions. Browsers turn shorter times into 4 ms. */
const PERIOD = 4

interface Buffer {
  mapAsync(...args: unknown[]): Promise<undefined>
}

interface Device {
  queue: {
    submit(commands: []): void
    onSubmittedWorkDone(): Promise<undefined>
  }
  createBuffer(descriptor: unknown): Buffer
}

const hurried = new WeakSet<Device>()

/**
 * Makes a device of Firefox report finished work soon. Devices of other browsers stay as they are.
 */
export function hurry(device: Device): void {
  const isFirefox = /\bFirefox\//.test(globalThis.navigator?.userAgent ?? '')
  if (!isFirefox || hurried.has(device)) return
  hurried.add(device)
  let waiting = 0
  let timer: ReturnType<typeof setInterval> | undefined
  const soon = async <T>(work: Promise<T>): Promise<T> => {
    waiting += 1
    timer ??= setInterval(() => device.queue.submit([]), PERIOD)
    try {
      return await work
    } finally {
      waiting -= 1
      if (waiting === 0) {
        clearInterval(timer)
        timer = undefined
      }
    }
  }
  const { queue } = device
  const workDone = queue.onSubmittedWorkDone
  queue.onSubmittedWorkDone = () => soon(workDone.call(queue))
  const createBuffer = device.createBuffer
  device.createBuffer = descriptor => {
    const buffer = createBuffer.call(device, descriptor)
    const mapAsync = buffer.mapAsync
    buffer.mapAsync = (...args) => soon(mapAsync.apply(buffer, args))
    return buffer
  }
}
