// Files, threads and storage of Node, which Deno and Bun have too.
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { platform } from '../platform.js'
import { FileBlob } from './file-blob.js'
import { disk } from './folder.js'
import { gpu } from './gpu.js'
import { thread } from './thread.js'

/** The package's folder. */
const PACKAGE = new URL('../', import.meta.url)

/** An address begins with two letters or more and a colon. `C:` is a drive. */
const ADDRESS = /^[a-z][a-z\d+.-]+:/i

Object.assign(platform, {
  thread,
  asset: (name: string) => readFile(new URL(name, PACKAGE)),
  address: (source: string) =>
    source === '' || ADDRESS.test(source) ? new URL(source) : pathToFileURL(resolve(source)),
  file: (url: string) => FileBlob.open(url),
  disk,
  gpu,
  pause: () => new Promise(resolve => setImmediate(resolve))
})
