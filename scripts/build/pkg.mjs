// Makes pkg/, the package as it is published.
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inRoot } from '../paths.mjs'
import { heading, seconds } from '../report.mjs'
import { isCurrent, modulesFingerprint, note, packageFingerprint } from './fingerprint.mjs'
import { address, compileTypeScript, copyReadability, hasThreads, obstacles, writeTexts } from './package.mjs'
import { BUDGET, CPU_BUDGET, entriesAgainstBudget, GRAMMAR_BUDGET, inAll, sizeAgainstBudget } from './size.mjs'
import { buildCpuModule, buildGrammar, buildWasm, cpuModules, GRAMMAR, STAGE, WASM } from './wasm.mjs'

export const PKG = inRoot('pkg')

/** Builds what has changed; needs what `setUp()` brings. */
export const buildPackage = () => {
  const print = packageFingerprint()
  const { modules: ofCpu, leftOut } = cpuModules()
  if (isCurrent(PKG, print)) {
    heading('Build: pkg/ is current')
  } else {
    heading('Build')
    const files = buildModules(ofCpu)
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

/** A note of the last build: the fingerprint of its inputs, and the paths of the files that it made. */
const MODULES = join(STAGE, 'modules.json')

/** Builds the modules of WebAssembly, unless their inputs are as they were: that takes minutes. Gives the path of each file of the package. */
const buildModules = ofCpu => {
  const print = modulesFingerprint()
  const known = existsSync(MODULES) ? JSON.parse(readFileSync(MODULES, 'utf8')) : {}
  if (known.print === print && Object.values(known.files).every(existsSync)) {
    heading('  WebAssembly is current')
    return known.files
  }
  rmSync(MODULES, { force: true })
  const engine = timed('Rust to WebAssembly', buildWasm)
  const forCpu = ofCpu.map(module => timed(`The same for the CPU, ${module.name}`, () => buildCpuModule(module)))
  const files = { ...engine, ...Object.assign({}, ...forCpu), [GRAMMAR]: timed('Grammars to WebAssembly', buildGrammar) }
  writeFileSync(MODULES, JSON.stringify({ print, files }))
  return files
}

const timed = (name, step) => {
  const start = performance.now()
  const result = step()
  heading(`  ${name.padEnd(28)}(${seconds(performance.now() - start)})`)
  return result
}
