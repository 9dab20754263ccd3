// Firefox looks for finished work of the GPU ten times a second, and whenever something is
// submitted. Without help a token takes a tenth of a second there, however fast the GPU is. So
// while something waits for the GPU, nothing is submitted, often.

/** Milliseconds between two looks. Browsers make four of less. */
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

/** Makes a device of Firefox tell of finished work soon. Other browsers' devices stay as they are. */
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
