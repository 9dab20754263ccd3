// All that answers a call, as one chunk.
export { callOf } from './call.js'
export { failed, partsOf, whole } from './parts.js'
