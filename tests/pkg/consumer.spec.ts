// The package in a Vite app and in a page without a bundler. Other bundlers: bundlers.spec.ts.
import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, filesOf, MODEL, PORT, result, test } from './consumer'

const VITE = resolve('node_modules/vite/bin/vite.js')
/** The answers of the Vite app: to `generate`, to OpenAI's interface, in a format, and to `LanguageModel`. */
const SAID = 'I am a (3 tokens), I am a, yes, available: I am a'
const TSC = resolve('node_modules/typescript/bin/tsc')

// Over ten seconds: it installs, compiles and builds, and five pages compile the kernels.
test('a fresh Vite app: types, development server, build', async ({ page, install, serve }) => {
  const app = install('vite')
  execFileSync(process.execPath, [TSC, '--project', app], { stdio: 'pipe' })

  const origin = `http://localhost:${PORT}`
  const stop = await serve([VITE, '--port', String(PORT), '--strictPort'], app, origin)
  for (const [worker, backend] of [['true', 'webgpu'], ['false', 'cpu']]) {
    expect(await result(page, `${origin}/?worker=${worker}&backend=${backend}&model=${MODEL}`)).toBe(SAID)
  }
  stop()

  execFileSync(process.execPath, [VITE, 'build', '--logLevel', 'error', '--base', './'], { cwd: app, stdio: 'pipe' })
  const built = `http://localhost:${PORT + 1}`
  await serve([VITE, 'preview', '--port', String(PORT + 1), '--strictPort'], app, built)
  for (const [worker, backend] of [['true', 'cpu'], ['false', 'webgpu'], ['mine', 'webgpu'], ['mine', 'cpu']]) {
    expect(await result(page, `${built}/?worker=${worker}&backend=${backend}&model=${MODEL}`)).toBe(SAID)
  }
})

test('a Vite app with the widget, also under a strict policy', { tag: '@all' }, async ({ page, install, serve }) => {
  const app = install('widget')
  execFileSync(process.execPath, [TSC, '--project', app], { stdio: 'pipe' })
  execFileSync(process.execPath, [VITE, 'build', '--logLevel', 'error', '--base', './'], { cwd: app, stdio: 'pipe' })
  const port = PORT + 10
  await serve(...filesOf(app, port))
  for (const path of ['', 'as/strict/']) {
    expect(await result(page, `http://localhost:${port}/${path}dist/index.html?model=${MODEL}`)).toBe('summed up')
  }
})

test('a page without a bundler, also under a strict policy and a path of its own', async ({ page, install, serve }) => {
  const port = PORT + 2
  await serve(...filesOf(install('plain'), port))
  for (const [path, backend] of [['', 'webgpu'], ['as/strict/', 'webgpu'], ['as/strict/', 'cpu']]) {
    expect(await result(page, `http://localhost:${port}/${path}index.html?backend=${backend}&model=${MODEL}`)).toBe('I am a, yes, I am a')
  }
})
