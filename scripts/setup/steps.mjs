// The list of prerequisites, and the loop that checks and installs them.
//
// A step is { name, check, install?, note?, remedy, without? }:
//   check()    what is installed, in a few words, or null where it is missing; takes milliseconds
//   install()  installs it, or rejects; left out where only a person can
//   note       what to print while installing
//   remedy()   what a person is to do where installing failed
//   without    what is left out where it stays missing; a step without this is needed
import { begin, heading, Stop } from '../report.mjs'
import { browser } from './browser.mjs'
import { firefox } from './firefox.mjs'
import { linker } from './linker.mjs'
import { newerNode, nodePackages, nodeVersion } from './node.mjs'
import { rust, rustComponents } from './rust.mjs'
import { vulkan } from './vulkan.mjs'
import { wasmBindgen, wasmPack } from './wasm-tools.mjs'
import { librarySources, wasmTarget } from './wasm-target.mjs'
import { webKit } from './webkit.mjs'

const FOR_RUST = [nodeVersion, linker, rust]
/** The steps of an inner array run at the same time. */
const FOR_BUILD = [...FOR_RUST, wasmTarget, librarySources, [nodePackages, wasmPack, wasmBindgen]]
const FOR_TESTS = [newerNode, rustComponents, browser, firefox, vulkan, webKit]

/** Makes `npm run build` work on this machine, with `tests` also `npm test`. */
export const setUp = ({ tests = false } = {}) =>
  ensureAll(tests ? [...FOR_BUILD, ...FOR_TESTS] : FOR_BUILD)

/** Makes cargo work on this machine. */
export const setUpNative = () => ensureAll(FOR_RUST)

const ensureAll = async steps => {
  heading('Setup')
  for (const step of steps) await (Array.isArray(step) ? ensureTogether(step) : ensure(step))
}

/** Checks one step, and installs it where it is missing. */
export const ensure = async step => {
  const line = begin(step.name)
  const found = step.check()
  if (found) return line.finish(found)
  if (step.install) line.note(step.note ?? 'installing')
  await finish(step, line)
}

/** Checks several steps, and installs those that are missing at the same time. */
const ensureTogether = async steps => {
  const missing = []
  for (const step of steps) {
    const found = step.check()
    if (found) begin(step.name).finish(found)
    else missing.push(step)
  }
  if (missing.length < 2) return missing.length === 0 ? undefined : ensure(missing[0])
  heading(`  installing at the same time: ${missing.map(({ name }) => name).join(', ')}`)
  // All of them end before the first failure is told: none goes on behind a message.
  const ends = await Promise.allSettled(
    missing.map(step => finish(step, begin(step.name, { later: true })))
  )
  for (const { reason } of ends) if (reason) throw reason
}

/** Installs a step and ends its line. If it stays missing, says or throws what a person is to do. */
const finish = async (step, line) => {
  let problem = ''
  try {
    await step.install?.()
  } catch (error) {
    problem = error.message
  }
  const found = problem || !step.install ? null : step.check()
  if (found) return line.finish(`installed: ${found}`)
  line.finish('missing')
  const said = [problem, `${step.name}: ${step.remedy()}`].filter(Boolean).join('\n')
  if (!step.without) throw new Stop(said)
  heading(`${said}\nUntil then ${step.without}.`)
}
