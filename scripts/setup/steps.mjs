// The list of prerequisites, and the loop that checks and installs them.
//
// A step is { name, check, install?, note?, remedy }:
//   check()    what is there, in a few words, or null where it is missing; takes milliseconds
//   install()  brings it, or throws; left out where only a person can
//   note       what to print while installing
//   remedy()   what a person is to do where installing failed
import { begin, heading, Stop } from '../report.mjs'
import { LOG } from '../process.mjs'
import { browser } from './browser.mjs'
import { linker } from './linker.mjs'
import { nodePackages, nodeVersion } from './node.mjs'
import { rust, rustComponents } from './rust.mjs'
import { vulkan } from './vulkan.mjs'
import { wasmBindgen, wasmPack } from './wasm-tools.mjs'
import { wasmTarget } from './wasm-target.mjs'

const FOR_BUILD = [nodeVersion, linker, rust, wasmTarget, wasmPack, wasmBindgen, nodePackages]
const FOR_TESTS = [rustComponents, browser, vulkan]

/** Brings the machine to where `npm run build`, or with `tests` also `npm test`, works. */
export const setUp = ({ tests = false } = {}) => {
  heading('Setup')
  for (const step of tests ? [...FOR_BUILD, ...FOR_TESTS] : FOR_BUILD) ensure(step)
}

/** Checks one step, and installs it where it is missing. */
export const ensure = step => {
  const line = begin(step.name)
  let found = step.check()
  if (found) return line.finish(found)

  let problem = ''
  if (step.install) {
    line.note(step.note ?? 'installing')
    try {
      step.install()
    } catch (error) {
      problem = error.message
    }
    found = problem ? null : step.check()
    if (found) return line.finish(`installed: ${found}`)
  }
  line.finish('missing')
  throw new Stop(
    [problem, problem && `The whole output of the last command: ${LOG}`, `${step.name}: ${step.remedy()}`]
      .filter(Boolean)
      .join('\n')
  )
}
