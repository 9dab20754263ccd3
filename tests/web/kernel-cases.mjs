// The cases of tests/kernels in this browser. scripts/build/kernel-cases.mjs compiles them.

/**
 * A case that ended in a trap leaves its worker useless: the next one gets another.
 */
class Cases {
  #worker
  #hear

  /** Resolves to what the worker says next. */
  #next() {
    return new Promise((resolve, reject) => {
      this.#hear = ({ done, failed }) => (failed === undefined ? resolve(done) : reject(new Error(failed)))
    })
  }

  /** The adapter, all cases and the names of all kernels. */
  open() {
    this.#worker?.terminate()
    this.#worker = new Worker(new URL('kernel-cases-worker.mjs', import.meta.url), { type: 'module' })
    this.#worker.onmessage = ({ data }) => this.#hear(data)
    this.#worker.onerror = event => {
      event.preventDefault()
      this.#hear({ failed: event.message ?? 'the worker did not start' })
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
 * Runs the cases of these files, or those of these names, or all of them. `tell` hears the name of each before it runs.
 *
 * Gives the browser, the adapter, the names of all kernels, and for each case its milliseconds, with either what
 * it has seen or why it failed: `kernels` are those that ran, with their variants; `differences` have the largest
 * one from the reference of each kernel, as a share of what is allowed.
 */
export const runCases = async ({ files, names, tell = () => {} } = {}) => {
  const all = new Cases()
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
