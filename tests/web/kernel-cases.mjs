// The cases of tests/kernels in this browser. scripts/build/kernel-cases.mjs compiles them.

const WORKER = new URL('kernel-cases-worker.mjs', import.meta.url)

/** The worker that runs them, one at a time. One in which a case failed is of no further use. */
class Cases {
  #script
  #worker
  #hear

  constructor(script) {
    this.#script = script
  }

  /** Resolves to what the worker says next. */
  #next() {
    return new Promise((resolve, reject) => {
      this.#hear = ({ done, failed }) => (failed === undefined ? resolve(done) : reject(new Error(failed)))
    })
  }

  /** The adapter, all cases and the names of all kernels. */
  open() {
    this.#worker?.terminate()
    const worker = new Worker(this.#script, { type: 'module' })
    this.#worker = worker
    worker.onmessage = ({ data }) => this.#hear(data)
    worker.onerror = event => {
      event.preventDefault()
      // A case has said why it failed before it ends in a trap, and another worker may be here by now.
      if (worker === this.#worker) this.#hear({ failed: event.message ?? 'the worker did not start' })
    }
    return this.#next()
  }

  run(number) {
    const next = this.#next()
    this.#worker.postMessage(number)
    return next
  }

  close() {
    this.#worker.terminate()
  }
}

/**
 * The end of a case. `failed` says why it failed. `kernels` are those that ran, with their variants; `differences` has
 * the largest difference of each kernel from its reference, divided by the tolerance.
 * @typedef {{
 *   file: string, name: string, ms: number, failed?: string, kernels?: string[], differences?: Record<string, number>
 * }} Outcome
 */

/**
 * Runs the cases of these files, or those of these names, or all of them. `tell` hears the name of each before it runs.
 * `worker` is another script for the worker.
 *
 * @param {{ files?: string[], names?: string[], tell?: (name: string) => void, worker?: string | URL }} [options]
 * @returns {Promise<{ browser: string, adapter: object, kernels: string[], cases: Outcome[] }>} `kernels` are the names of
 *   all kernels
 */
export const runCases = async ({ files, names, tell = () => {}, worker = WORKER } = {}) => {
  const all = new Cases(worker)
  const { adapter, cases, kernels } = await all.open()
  const isWanted = ({ file, name }) => (files?.includes(file) ?? true) && (names?.includes(name) ?? true)
  const found = []
  for (const [number, { file, name }] of cases.entries()) {
    if (!isWanted({ file, name })) continue
    tell(`${file}: ${name}`)
    const start = performance.now()
    const outcome = await all.run(number).catch(error => ({ failed: error.message }))
    found.push({ file, name, ms: Math.round(performance.now() - start), ...outcome })
    if (outcome.failed) await all.open()
  }
  all.close()
  return { browser: navigator.userAgent, adapter, kernels, cases: found }
}
