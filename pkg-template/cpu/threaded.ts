// Where the modules with threads are. A build that cannot make them replaces this table by an empty one.
import type { Name } from './probes.js'

/** Where a module and its script are. */
export interface Place {
  script: URL
  wasm: URL
}

export const THREADED: Partial<Record<Name, Place>> = {
  relaxed: {
    script: new URL('./tritloom-relaxed-threads.js', import.meta.url),
    wasm: new URL('./tritloom-relaxed-threads.wasm', import.meta.url)
  },
  simd: {
    script: new URL('./tritloom-simd-threads.js', import.meta.url),
    wasm: new URL('./tritloom-simd-threads.wasm', import.meta.url)
  }
}
