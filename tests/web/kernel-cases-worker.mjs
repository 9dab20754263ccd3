// Runs the cases of the kernels: they compute for seconds, which would hold a page.
import { askForFeatures } from '../../pkg/crate/features.js'
import init, { cases, kernels, open, run } from '../../target/kernel-cases/kernel_cases.js'

/** The crate calls this before it ends in a trap. */
globalThis.panicked = message => postMessage({ failed: message })

globalThis.onmessage = async ({ data: number }) => {
  try {
    postMessage({ done: await run(number) })
  } catch (error) {
    postMessage({ failed: String(error) })
  }
}

try {
  askForFeatures()
  await init()
  const adapter = await open()
  postMessage({ done: { adapter, cases: cases(), kernels: kernels() } })
} catch (error) {
  postMessage({ failed: String(error) })
}
