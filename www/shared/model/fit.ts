// Whether a model fits this device, as far as a page can know. A page cannot know how much memory
// the GPU has; a model runs with little of it too.
import { BitNet, type Availability } from 'tritloom'
import { formatBytes } from 'tritloom/words'
import { fileOf, type KnownModel } from './models.ts'

/** Known facts about this device. */
export interface Device {
  /** The machine that computes, and the limits of the GPU. */
  gpu: Availability
  /** Bytes that the browser would still store; undefined if it does not say. */
  free?: number
  /** Bytes of stored models, which are deleted if a new one needs the room. */
  replaceable: number
  /** The addresses of the models that are stored as a whole. */
  stored: ReadonlySet<string>
}

export interface Verdict {
  fits: 'yes' | 'no' | 'unknown'
  /** The reason, as a sentence. */
  why: string
}

/** Bytes of a file that some GPUs hold only in part. */
const LARGE = 1e9

const SLOWER = ' If the GPU’s memory holds only a part of it, it is slower.'

/** Asks the browser. If it does not allow storage, the facts about storage stay unknown. */
export async function readDevice(): Promise<Device> {
  const gpu = await BitNet.availability()
  try {
    const models = await BitNet.cache.list()
    const { quota, usage } = await BitNet.cache.estimate()
    return {
      gpu,
      ...(quota && usage !== undefined && { free: Math.max(0, quota - usage) }),
      replaceable: models.reduce((sum, { bytes }) => sum + bytes, 0),
      stored: new Set(models.filter(({ complete }) => complete).map(({ url }) => url))
    }
  } catch {
    return { gpu, replaceable: 0, stored: new Set() }
  }
}

/** Compares a model with this device: first the GPU's limits, then the room to store it. */
export function judge(model: KnownModel, device: Device): Verdict {
  const { gpu, free, replaceable, stored } = device
  const { bytes, vocabulary } = model
  if (!gpu.available) return { fits: 'no', why: `No model can run here: ${gpu.reason}.` }

  // The engine cuts weights to fit, and the context too. It cannot cut the scores of a token. They
  // need one binding, with an f32 for each token of the vocabulary.
  const onCpu = gpu.backend === 'cpu'
  const binding = onCpu ? Infinity : gpu.limits.maxStorageBufferBindingSize
  if (vocabulary && binding && 4 * vocabulary > binding) {
    const needed = `It needs ${formatBytes(4 * vocabulary)} in one binding`
    return { fits: 'no', why: `${needed}; this GPU allows ${formatBytes(binding)}.` }
  }
  const file = fileOf(model)
  if (file && stored.has(file)) return { fits: 'yes', why: 'It is on this device already.' }
  if (free === undefined) {
    return { fits: 'unknown', why: 'This browser does not say how much it can store.' }
  }
  const room = formatBytes(free)
  if (bytes > free + replaceable) {
    const why = `It has ${formatBytes(bytes)}, and the browser can store ${room} more`
    return { fits: 'no', why: `${why}. It can run, but is downloaded again each time.` }
  }
  if (!vocabulary || !binding) {
    const why = 'There is room to store it. Its file will say what it needs of the GPU.'
    return { fits: 'unknown', why }
  }
  if (onCpu && bytes <= free) return { fits: 'yes', why: 'The processor computes it, and there is room to store it.' }
  return bytes > free
    ? { fits: 'yes', why: `It is stored in place of older models, as ${room} are free.` }
    : { fits: 'yes', why: `The GPU’s limits allow it, and there is room to store it.${bytes > LARGE ? SLOWER : ''}` }
}
