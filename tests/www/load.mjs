// Modules of the demos that know nothing of a page, loaded as Vite compiles them.
import { resolve } from 'node:path'
import { runnerImport } from 'vite'
import * as tritloom from '../../pkg/index.js'

const ROOT = resolve(import.meta.dirname, '../..')

globalThis.tritloomOfTests = tritloom

/** The exports of a module in `www/`. */
export const load = async path => {
  const alias = [
    { find: /^tritloom$/, replacement: resolve(import.meta.dirname, 'tritloom.mjs') },
    { find: /^tritloom\/(.*)$/, replacement: resolve(ROOT, 'pkg/$1.js') }
  ]
  const { module } = await runnerImport(resolve(ROOT, 'www', path), { configFile: false, logLevel: 'error', resolve: { alias } })
  return module
}
