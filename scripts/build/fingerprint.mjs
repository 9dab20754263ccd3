// Whether anything has changed that goes into a build (pkg/, its modules of WebAssembly, the kernels' cases) since it was made.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot } from '../paths.mjs'
import { capture } from '../process.mjs'
import { threadsEnvironment, wasmEnvironment } from '../setup/wasm-target.mjs'

/** The inputs of the modules. package-lock.json has binaryen's version. */
const OF_MODULES = [
  'Cargo.toml',
  'Cargo.lock',
  'src',
  'shaders',
  'package-lock.json',
  ...['wasm', 'imports', 'standalone'].map(name => `scripts/build/${name}.mjs`)
]
const OF_PACKAGE = [
  ...OF_MODULES,
  'scripts/build',
  'pkg-template',
  'LICENSE-MIT',
  'LICENSE-APACHE',
  'CHANGELOG.md'
]

export const packageFingerprint = () => fingerprint(OF_PACKAGE)
export const modulesFingerprint = () => fingerprint(OF_MODULES)

/** A hash of every input's name and bytes, of the compiler, and of whether the modules with threads can be built. */
export const fingerprint = inputs => {
  const hash = createHash('sha256')
  for (const path of inputs.flatMap(filesIn))
    hash
      .update(`${path}\0`)
      .update(readFileSync(inRoot(path)))
      .update('\0')
  hash.update(String(threadsEnvironment() !== null))
  hash.update(capture('rustc', ['-vV'], { env: wasmEnvironment() ?? {} }) ?? '')
  return hash.digest('hex')
}

const filesIn = path => {
  if (!existsSync(inRoot(path))) return []
  if (statSync(inRoot(path)).isFile()) return [path]
  return readdirSync(inRoot(path))
    .sort()
    .flatMap(name => filesIn(`${path}/${name}`))
}

/** Not among the package's `files`, so it is never published. */
const noted = folder => join(folder, '.fingerprint')

export const isCurrent = (folder, print) =>
  existsSync(noted(folder)) && readFileSync(noted(folder), 'utf8') === print

export const note = (folder, print) => writeFileSync(noted(folder), print)
