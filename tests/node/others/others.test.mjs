// The package in Deno and in Bun, and in Node with Dawn's WebGPU, which `npm run test:all` installs here.
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inRoot } from '../../../scripts/paths.mjs'
import { swiftShader } from '../../../scripts/setup/browser.mjs'
import { expected, goldens, run, server } from '../support.mjs'

const MODULES = inRoot('tests', 'node', 'others', 'node_modules')
// Node finds `webgpu` only beside the package. Files of an older one would stay.
rmSync(join(MODULES, 'tritloom'), { recursive: true, force: true })
cpSync(inRoot('pkg'), join(MODULES, 'tritloom'), { recursive: true })
const PACKAGE = join(MODULES, 'tritloom', 'node', 'index.js')

const { origin } = await server()
const URL_OF_GOLDEN = `${origin}/tests/data/golden/golden.gguf`
const TEXT = goldens.find(({ name }) => name === 'who').greedy_text
const [deno, bun] = ['deno', 'bun'].map(name => join(MODULES, '.bin', name))
/** A GPU that is a CPU, which compiles the kernels of five loads: that takes longer than ten seconds. */
const icd = process.platform === 'linux' ? swiftShader() : null

for (const [name, program, args, backend] of [
  ['Deno', deno, ['run', '--allow-all'], 'cpu'], ['Bun', bun, ['run'], 'cpu'],
  ['Deno with a GPU', deno, ['run', '--allow-all'], 'webgpu'], ['Node with a GPU', process.execPath, [], 'webgpu']
]) {
  const skip = backend === 'webgpu' && !icd && 'no SwiftShader'
  test(`${name}: all golden texts, token by token; a path, an address and storage; formats, and errors`, { skip }, async t => {
    const folder = mkdtempSync(join(tmpdir(), 'tritloom-others-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const { status, stdout, stderr } = await run(
      program, [...args, inRoot('tests', 'node', 'elsewhere.mjs'), PACKAGE, URL_OF_GOLDEN, backend],
      { env: { TRITLOOM_CACHE: folder, ...(icd && { VK_DRIVER_FILES: icd }) } }
    )
    assert.equal(status, 0, stderr)
    assert.deepEqual(JSON.parse(stdout), {
      found: goldens.map(expected), texts: [TEXT, TEXT, TEXT, TEXT], value: 'a', backend, stored: [[URL_OF_GOLDEN, true]], whole: true,
      codes: ['io', 'bad-option']
    })
  })
}
