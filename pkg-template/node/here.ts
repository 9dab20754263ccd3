// Files, threads and storage of Node, which Deno and Bun have too.
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { platform } from '../platform.js'
import { FileBlob } from './file-blob.js'
import { disk } from './folder.js'
import { gpu } from './gpu.js'
import { thread } from './thread.js'

/** The package's folder. Bundlers would take `new URL('..', import.meta.url)` for a file of its own. */
const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url)))

/** An address begins with two letters or more and a colon. `C:` is a drive. */
const ADDRESS = /^[a-z][a-z\d+.-]+:/i

Object.assign(platform, {
  thread,
  // Not tested in the others.
  ...('deno' in process.versions || 'bun' in process.versions ? { oneThread: 'only browsers and Node have several threads' } : {}),
  // A program has other uses for its processors, so a load has to ask for more.
  threads: 1,
  processors: availableParallelism(),
  asset: (name: string) => readFile(join(PACKAGE, name)),
  address: (source: string) =>
    source === '' || ADDRESS.test(source) ? new URL(source) : pathToFileURL(resolve(source)),
  file: (url: string) => FileBlob.open(url),
  disk,
  gpu,
  pause: () => new Promise(resolve => setImmediate(resolve))
})
