// An error as a page shows it: its code, its message, and what the reader can do.
import { BitNetError } from 'ternlight'

/** What a page shows of an error. */
export interface Failure {
  code: string
  message: string
  /** What the reader can do; empty where the message says it all. */
  advice: string
}

const ADVICE: Record<string, string> = {
  'no-webgpu':
    'Use a browser with WebGPU, such as a current Chrome, Edge, Safari or Firefox. Browsers offer it only on https: pages and on localhost.',
  'no-adapter':
    'The browser knows WebGPU but found no graphics adapter for it. Look at chrome://gpu, update the graphics driver, or allow hardware acceleration in the settings.',
  'missing-feature': 'This graphics adapter lacks something that the model needs. Another device or browser may have it.',
  'device-lost': 'The graphics device was reset or taken away. Load the model again.',
  'out-of-memory': 'The model does not fit into the memory of this device. Pick a smaller one.',
  'bad-gguf': 'Pick a complete GGUF file; a download that was cut short is not one.',
  'unsupported-model': 'Pick a BitNet b1.58 model in GGUF form.',
  http: 'Check the address.',
  network: 'Check the address and the connection. The other site also has to allow its files to be read from here (CORS).',
  'not-cached': 'Go online once, so that the model can be downloaded.',
  'storage-full': 'Free some space for this site in the browser, or pick a smaller model.',
}

/** Describes whatever was thrown; an error from elsewhere has its own name as code. `contextFull` is a page's own advice. */
export function describeFailure(error: unknown, contextFull = 'Write less.'): Failure {
  if (error instanceof BitNetError) {
    const advice = error.code === 'context-full' ? contextFull : ADVICE[error.code]
    return { code: error.code, message: error.message, advice: advice ?? '' }
  }
  if (error instanceof Error) return { code: error.name, message: error.message, advice: '' }
  return { code: 'Error', message: String(error), advice: '' }
}
