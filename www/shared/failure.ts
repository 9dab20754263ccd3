// An error as a page shows it: its code, its message, and what the reader can do.
import { BitNetError, type ErrorCode } from 'ternlight'

/** What a page shows of an error. */
export interface Failure {
  code: string
  message: string
  /** What the reader can do; empty where the message says it all. */
  advice: string
}

/** Only what the package's own messages do not say: it speaks to developers too, and knows no buttons. */
const ADVICE: Partial<Record<ErrorCode, string>> = {
  'no-adapter': 'Update the graphics driver, or allow hardware acceleration in the browser’s settings.',
  'device-lost': 'Load the model again.',
  'out-of-memory': 'A smaller model may fit.',
  'bad-gguf': 'A download that was cut short is not one either.',
  network: 'Check the address and the connection. The other site also has to allow its files to be read from here (CORS).',
  'storage-full': 'Free some space for this site in the browser.'
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
