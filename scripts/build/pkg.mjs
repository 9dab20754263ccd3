// Makes pkg/, the package as it is published.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inRoot } from '../paths.mjs'
import { heading, seconds } from '../report.mjs'
import { fingerprint, isCurrent, note } from './fingerprint.mjs'
import { address, compileTypeScript, copyReadability, hasThreads, obstacles, writeTexts } from './package.mjs'
import { BUDGET, CPU_BUDGET, entriesAgainstBudget, GRAMMAR_BUDGET, inAll, sizeAgainstBudget } from './size.mjs'
import { buildCpuModule, buildGrammar, buildWasm, cpuModules, GRAMMAR, WASM } from './wasm.mjs'

export const PKG = inRoot('pkg')

/** Builds what has changed; needs what `setUp()` brings. */
export const buildPackage = () => {
  const print = fingerprint()
  const { modules: ofCpu, leftOut } = cpuModules()
  if (isCurrent(PKG, print)) {
    heading('Build: pkg/ is current')
  } else {
    heading('Build')
    const engine = timed('Rust to WebAssembly', buildWasm)
    const forCpu = ofCpu.map(module => timed(`The same for the CPU, ${module.name}`, () => buildCpuModule(module)))
    const files = { ...engine, ...Object.assign({}, ...forCpu), [GRAMMAR]: timed('Grammars to WebAssembly', buildGrammar) }
    timed('TypeScript', () => {
      rmSync(PKG, { recursive: true, force: true })
      mkdirSync(PKG, { recursive: true })
      for (const [name, from] of Object.entries(files)) {
        mkdirSync(dirname(join(PKG, name)), { recursive: true })
        copyFileSync(from, join(PKG, name))
      }
      copyReadability(PKG)
      compileTypeScript(PKG)
    })
    timed('package.json and texts', () => writeTexts(PKG))
  }
  const modules = [
    sizeAgainstBudget('wasm', join(PKG, WASM), BUDGET),
    sizeAgainstBudget('grammar', join(PKG, GRAMMAR), GRAMMAR_BUDGET),
    ...ofCpu.map(({ name, file }) => sizeAgainstBudget(name, join(PKG, file), CPU_BUDGET)),
    ...(leftOut ? [leftOut] : [])
  ]
  const sizes = [...modules, ...entriesAgainstBudget(PKG), inAll(PKG)]
  const lines = [...sizes, ...obstacles(address(), hasThreads(PKG)).map(why => `cannot be published: ${why}`)]
  for (const line of lines) heading(`  ${line}`)
  note(PKG, print)
}

const timed = (name, step) => {
  const start = performance.now()
  const result = step()
  heading(`  ${name.padEnd(28)}(${seconds(performance.now() - start)})`)
  return result
}
