// Where the package runs.

/** Whether this is a page or a worker of one, and not, for example, Node. */
export const isBrowser = (): boolean => globalThis.isSecureContext !== undefined

/** The reason why nothing can run outside a browser. */
export const NO_BROWSER = 'this is not a browser, and has no WebGPU'
