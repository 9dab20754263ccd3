// Where the package runs.
import { platform } from '../platform.js'

/** Whether models can be loaded: in a page, in a worker of one, and where `node/` stands in for a browser. */
export const isBrowser = (): boolean => platform.thread !== undefined || globalThis.isSecureContext !== undefined

/** The reason why nothing can run outside a browser. */
export const NO_BROWSER = 'this is not a browser, and has no WebGPU'
