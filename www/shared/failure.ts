// An error as a page shows it: its code, its message, and what the reader can do.
import { BitNetError, type ErrorCode } from 'ternlight'

/** What a page shows of an error. */
export interface Failure {
  code: string
  message: string
  /** What the reader can do; empty where the message says it all. */
  advice: string
}

/** What to do about an error, by its code. */
export type Advice = Partial<Record<ErrorCode, string>>

/**
 * Only what the package's messages leave out: they are for developers too, and know no buttons.
 */
const ADVICE: Advice = {
  'no-adapter':
    'Update the graphics driver, or allow hardware acceleration in the browser’s settings.',
  'device-lost': 'Load the model again.',
  'out-of-memory': 'A smaller model may fit.',
  'bad-gguf': 'Perhaps its download was cut short.',
  network:
    'Check the address and the connection. ' +
    'The other site also has to allow pages to read its files (CORS).',
  io: 'Check that the file is still there, and choose it again.',
  'storage-full': 'Free some space for this site in the browser.'
}

/**
 * Describes whatever was thrown; an error of another class has its name as code. `own` is the
 * page's own advice, and comes before the general one.
 */
export function describeFailure(error: unknown, own: Advice = {}): Failure {
  if (error instanceof BitNetError) {
    const { code, message } = error
    return { code, message, advice: own[code] ?? ADVICE[code] ?? '' }
  }
  if (error instanceof Error) return { code: error.name, message: error.message, advice: '' }
  return { code: 'Error', message: String(error), advice: '' }
}
